"""What the tensor engine's commands do, one after another, to the bit."""

from types import SimpleNamespace

import numpy as np

from spec.errors import SpecError
from spec.formats import FORMAT_CODES
from spec.tensor import Matmul, Opcode, check_matmul, check_transpose, command_fields

from .formats import storage_dtype
from .tensor import accumulate, matmul, transpose

__all__ = ["TensorEngine"]

_FORMAT_NAMES = {code: name for name, code in FORMAT_CODES.items()}


class TensorEngine:
    """The tensor engine of a core as commands see it (``spec.tensor``; rules N0 to N5, N13, N14).

    The weights and the partial-sum buffer persist from one :meth:`execute` to the next.

    Parameters
    ----------
    core : spec.config.CoreConfig

    Attributes
    ----------
    psum : uint32 array [cols, banks, words]
        The partial-sum buffer, zero at the start.
    """

    def __init__(self, core):
        self.core = core
        self.psum = np.zeros((core.cols, core.psum_banks, core.psum_bank_words), np.uint32)
        self.reset()

    def reset(self):
        """Forget the weights; the partial-sum buffer keeps its contents."""
        self._load, self._weights = None, None

    def execute(self, commands, stationary, moving):
        """Execute commands and send what they read.

        Parameters
        ----------
        commands : iterable of int
            Encoded as ``spec.tensor.encode_command`` does; fields that an opcode does not use are ignored.
        stationary : uint8 array [words, 2 * rows * bytes of a slot]
        moving : uint8 array [words, rows * bytes of a slot]
            The operand streams, lowest byte and lowest row first. Commands take their words in order; a LOAD takes
            ceil(columns / 2), a MULTIPLY ``count`` unless it transposes. Words left over are ignored.

        Returns
        -------
        uint32 array [words, cols]
            The results stream.

        Raises
        ------
        SpecError
            For a stream of another dtype or word size, or with fewer words than the commands take; for a command that
            reaches beyond the array or a bank, and for a product or transpose that the core does not do. Commands before
            the one refused have been executed.
        """
        slot_bytes = self.core.slot_bits // 8
        stationary = _Stream("stationary", stationary, (self.core.rows, 2, slot_bytes))
        moving = _Stream("moving", moving, (self.core.rows, slot_bytes))
        results = [np.zeros((0, self.core.cols), np.uint32)]
        for number in commands:
            command = self._decode(int(number))
            if command.opcode == Opcode.LOAD:
                self._execute_load(command, stationary)
            elif command.opcode == Opcode.MULTIPLY:
                self._execute_multiply(command, moving)
            elif command.opcode == Opcode.READ:
                results.append(self._words(command).T.copy())
        return np.concatenate(results)

    def _decode(self, number):
        fields, rest = {}, number
        for name, width in command_fields(self.core):
            fields[name] = rest & ((1 << width) - 1)
            rest >>= width
        if rest:
            raise SpecError("command", number, f"{sum(width for _, width in command_fields(self.core))} bits")
        return SimpleNamespace(**fields)

    def _words(self, command):
        """A view ``[cols, count]`` of the words that a MULTIPLY or READ names."""
        _check_most("count", command.count, self.core.psum_bank_words - command.offset)
        return self.psum[:, command.bank, command.offset:command.offset + command.count]

    def _execute_load(self, command, stationary):
        if not command.columns or not command.contraction:
            return
        _check_most("columns", command.columns, self.core.cols)
        _check_most("first_row", command.first_row, self.core.rows - 1)
        per_row = 2 if command.paired else 1
        _check_most("contraction", command.contraction, per_row * (self.core.rows - command.first_row))
        pairs_of_columns = stationary.take(-(-command.columns // 2))
        slots = pairs_of_columns.swapaxes(0, 1).reshape(self.core.rows, -1, pairs_of_columns.shape[-1])
        # Which elements they are is asked when a MULTIPLY follows: only then does the format matter.
        self._load, self._weights = command, slots[:, :command.columns].copy()

    def _execute_multiply(self, command, moving):
        if not self._load or not command.count:
            return
        target = self._words(command)[:self._load.columns]
        target[:] = self._transposed(command) if self._load.transpose else self._sums(command, moving, target)

    def _sums(self, command, moving, old):
        form = Matmul(_format_name(self._load), _format_name(command), bool(self._load.paired))
        check_matmul(self.core, form)
        sums = matmul(_elements(self._weights, self._load, form.stationary),
                      _elements(moving.take(command.count).swapaxes(0, 1), self._load, form.moving), form)
        return accumulate(old, sums, form.is_integer) if command.accumulate else sums

    def _transposed(self, command):
        name = _format_name(self._load)
        check_transpose(self.core, name)
        if self._load.paired or command.accumulate:
            raise SpecError("paired" if self._load.paired else "accumulate", 1, "0 with transpose")
        _check_most("count", command.count, self._load.contraction)
        return transpose(_elements(self._weights, self._load, name))[:, :command.count]


class _Stream:
    """Words of an operand, taken in order, as slots of shape ``slots`` a word."""

    def __init__(self, name, words, slots):
        words, size = np.asarray(words), int(np.prod(slots))
        if words.dtype != np.uint8:
            raise SpecError(f"dtype of {name}", str(words.dtype), "uint8")
        if words.ndim != 2 or words.shape[1] != size:
            raise SpecError(f"shape of {name}", words.shape, f"two dimensions, words of {size} bytes")
        self._name, self._words, self._taken = name, words.reshape(-1, *slots), 0

    def take(self, count):
        """The next ``count`` words."""
        first, self._taken = self._taken, self._taken + count
        if self._taken > len(self._words):
            raise SpecError(f"words of {self._name}", len(self._words), f"at least {self._taken}, which the commands take")
        return self._words[first:self._taken]


def _elements(slots, load, name):
    """The elements ``[contraction, columns]`` of format ``name`` in ``slots[rows, columns, bytes]``."""
    slots = slots[load.first_row:]
    if load.paired:
        pairs = -(-load.contraction // 2)
        return np.concatenate([slots[:pairs, :, 0], slots[:load.contraction - pairs, :, 1]])
    dtype = storage_dtype(name)
    return np.ascontiguousarray(slots[:load.contraction, :, :dtype.itemsize]).view(dtype)[..., 0]


def _format_name(command):
    return _FORMAT_NAMES.get(command.format, command.format)


def _check_most(field, value, most):
    if value > most:
        raise SpecError(field, value, f"0 to {most} here")
