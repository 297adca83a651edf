"""Random programs of legal tensor-engine commands, with their operands as the streams carry them."""

from itertools import product

import numpy as np

from spec.errors import SpecError
from spec.formats import FORMAT_CODES
from spec.tensor import Matmul, Opcode, check_matmul, encode_command
from tests.corners import random_bits
from tests.matmul_cases import matmul_operands

__all__ = ["legal_forms", "stationary_words", "moving_words", "read_everything", "random_program"]


def legal_forms(core):
    """Every :class:`spec.tensor.Matmul` that ``core`` computes."""
    def is_legal(form):
        try:
            check_matmul(core, form)
        except SpecError:
            return False
        return True

    return [form for form in (Matmul(*args) for args in product(core.formats, core.formats, (False, True))) if is_legal(form)]


def stationary_words(rng, core, elements, first_row=0, paired=False):
    """``elements[K, M]``, unsigned bit patterns, as words of ``stationary``; every bit that no element uses is random."""
    words = -(-elements.shape[1] // 2)
    slots = _slots(rng, core, 2 * words, elements, first_row, paired)
    return slots.reshape(core.rows, words, -1).swapaxes(0, 1).reshape(words, -1)


def moving_words(rng, core, elements, first_row=0, paired=False):
    """``elements[K, N]``, unsigned bit patterns, as words of ``moving``; every bit that no element uses is random."""
    words = elements.shape[1]
    return _slots(rng, core, words, elements, first_row, paired).swapaxes(0, 1).reshape(words, -1)


def _slots(rng, core, columns, elements, first_row, paired):
    """Slots ``[rows, columns, bytes]`` that hold ``elements``."""
    slots = rng.integers(0, 256, (core.rows, columns, core.slot_bits // 8), np.uint8)
    k, m = elements.shape
    rows = -(-k // 2) if paired else k
    used = slots[first_row:first_row + rows, :m]
    if paired:
        used[..., 0] = elements[:rows]
        used[:k - rows, :, 1] = elements[rows:]
    else:
        used[..., :elements.itemsize] = np.ascontiguousarray(elements)[..., None].view(np.uint8)
    return slots


def read_everything(core):
    """Commands that read the whole partial-sum buffer, bank after bank."""
    return [encode_command(core, opcode=Opcode.READ, bank=bank, count=core.psum_bank_words) for bank in range(core.psum_banks)]


def random_program(rng, core, length):
    """A program for an engine that has just been reset, whose buffer holds zeros.

    All that ``core`` can do turns up, mixed at random: every product, transposes, parts of the array, overlapping words, the
    same words again at once, LOADs without a MULTIPLY, MULTIPLYs before any LOAD, READs of words never written, and commands
    that do nothing. Unused fields of commands and unused bits of operands are random. Rows start at multiples of
    ``core.quadrant``. A sum is never added to a sum of the other kind, integer or float.

    Parameters
    ----------
    rng : numpy.random.Generator
    core : spec.config.CoreConfig
    length : int
        Commands.

    Returns
    -------
    commands : list of int
    stationary, moving : uint8 arrays [words, bytes of a word]
        Exactly the words that the commands take.
    """
    program = _Program(rng, core)
    actions = [program.add_load, program.add_multiply, program.add_read, program.add_nothing]
    for action in rng.choice(len(actions), length, p=[0.25, 0.45, 0.2, 0.1]):
        actions[action]()
    return program.commands, np.concatenate(program.stationary), np.concatenate(program.moving)


_BITS, _FLOAT, _INTEGER = range(3)
"""What a word of the buffer holds; sums of either kind may be added to zeros and to transposed bits."""


class _Program:
    def __init__(self, rng, core):
        self.rng, self.core, self.forms = rng, core, legal_forms(core)
        self.commands = []
        slot_bytes = core.slot_bits // 8
        self.stationary = [np.zeros((0, 2 * core.rows * slot_bytes), np.uint8)]
        self.moving = [np.zeros((0, core.rows * slot_bytes), np.uint8)]
        self.load, self.moving_forms = None, []
        self.kinds = np.full((core.cols, core.psum_banks, core.psum_bank_words), _BITS)
        # A few places, so that commands meet on the same words: both ends of a bank and anywhere.
        offsets = 0, max(0, core.psum_bank_words - 5), self.below(core.psum_bank_words)
        self.places = [(self.below(core.psum_banks), offset) for offset in offsets]
        self.words = None

    def below(self, end):
        return int(self.rng.integers(end))

    def chance(self, share):
        return bool(self.rng.random() < share)

    def extent(self, most):
        """1 to ``most``, the ends more often than others."""
        return int(self.rng.choice([1, most, 1 + self.below(most)], p=[0.2, 0.4, 0.4]))

    def add(self, opcode, **used):
        """Append a command whose fields are random where not ``used``."""
        first_row, offset = self.below(self.core.rows), self.below(self.core.psum_bank_words)
        unused = dict(format=self.below(16), first_row=first_row, contraction=self.below(self.core.rows - first_row + 1),
                      columns=self.below(self.core.cols + 1), paired=self.below(2), transpose=self.below(2),
                      count=self.below(self.core.psum_bank_words - offset + 1), bank=self.below(self.core.psum_banks),
                      offset=offset, accumulate=self.below(2))
        self.commands.append(encode_command(self.core, opcode=opcode, **unused | used))

    def add_nothing(self):
        opcode, used = [(Opcode.LOAD, dict(columns=0)), (Opcode.LOAD, dict(contraction=0)), (Opcode.MULTIPLY, dict(count=0)),
                        (Opcode.READ, dict(count=0)), (3, {})][self.below(5)]
        self.add(opcode, **used)

    def add_load(self):
        transposes = self.core.transpose and self.chance(0.2)
        # Formats equally often, and not those the most that go with many others.
        weights = sorted({(form.stationary, form.paired) for form in self.forms})
        name, paired = weights[self.below(len(weights))]
        paired = paired and not transposes
        first_row = self.core.quadrant * self.below(-(-self.core.rows // self.core.quadrant))
        k = self.extent((2 if paired else 1) * (self.core.rows - first_row))
        self.load = dict(format=FORMAT_CODES[name], first_row=first_row, contraction=k, columns=self.extent(self.core.cols),
                         paired=paired, transpose=transposes)
        self.add(Opcode.LOAD, **self.load)
        self.moving_forms = [form for form in self.forms if (form.stationary, form.paired) == (name, paired)]
        if transposes:
            elements = random_bits(self.rng, name, (k, self.load["columns"]))
        else:
            elements, _ = matmul_operands(self.rng, self.moving_forms[0], k, self.load["columns"], 1, specials=0.01)
        self.stationary.append(stationary_words(self.rng, self.core, elements, first_row, paired))

    def choose_words(self, most):
        """Bank, offset and count, up to ``most``: the last MULTIPLY's words, a bank from its start, in a place, anywhere."""
        if self.words and self.chance(0.4):
            return self.words | dict(count=min(self.words["count"], most))
        if self.chance(0.02):
            return dict(bank=self.below(self.core.psum_banks), offset=0, count=self.extent(most))
        bank, offset = self.places[self.below(len(self.places))]
        if self.chance(0.1):
            bank, offset = self.below(self.core.psum_banks), self.below(self.core.psum_bank_words)
        offset = min(offset + self.below(3), self.core.psum_bank_words - 1)
        limit = int(self.rng.choice([1, 4, self.core.rows + self.core.cols], p=[0.4, 0.35, 0.25]))
        return dict(bank=bank, offset=offset, count=self.extent(min(limit, most, self.core.psum_bank_words - offset)))

    def add_read(self):
        self.add(Opcode.READ, **self.choose_words(self.core.psum_bank_words))

    def add_multiply(self):
        if not self.load:
            self.add(Opcode.MULTIPLY)
            return
        load = self.load
        self.words = self.choose_words(load["contraction"] if load["transpose"] else self.core.psum_bank_words)
        offset, count = self.words["offset"], self.words["count"]
        kinds = self.kinds[:load["columns"], self.words["bank"], offset:offset + count]
        if load["transpose"]:
            self.add(Opcode.MULTIPLY, **self.words, accumulate=0)
            kinds[:] = _BITS
            return
        form = self.moving_forms[self.below(len(self.moving_forms))]
        kind = _INTEGER if form.is_integer else _FLOAT
        accumulate = self.chance(0.7) and bool(np.isin(kinds, (_BITS, kind)).all())
        self.add(Opcode.MULTIPLY, **self.words, accumulate=int(accumulate), format=FORMAT_CODES[form.moving])
        kinds[:] = kind
        _, elements = matmul_operands(self.rng, form, load["contraction"], 1, count, specials=0.01)
        self.moving.append(moving_words(self.rng, self.core, elements, load["first_row"], load["paired"]))
