"""The named presets and how a user's overrides change them."""

from dataclasses import fields, replace

from .config import ChipConfig, CoreConfig, SystemConfig
from .errors import SpecError, choices

__all__ = ["PRESETS", "configure", "parse_settings"]

_V2_FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8")


def _preset(name, system=None, chip=None, **core):
    return SystemConfig(ChipConfig(name, CoreConfig(**core), **(chip or {})), **(system or {}))


PRESETS = {preset.chip.name: preset for preset in (
    _preset("nano", rows=4, cols=4, tile=4, sbuf_kib=4, formats=("all",), fp8_pairs=True, transpose=True),
    _preset("mini", rows=8, cols=8, sbuf_kib=8, formats=("bf16", "fp16", "fp8", "fp32"), fp8_pairs=True,
            transpose=True, chip=dict(cores=2, link_ports=2)),
    _preset("small", rows=32, cols=32, sbuf_kib=32, formats=("bf16", "fp8"), fp8_pairs=True, transpose=True,
            chip=dict(cores=2, link_ports=2)),
    # The array's size is not public: 64 x 64 at 2 GHz gives the published 16 TFLOPS. SBUF is our choice.
    _preset("inf1", rows=64, cols=64, sbuf_kib=96, formats=("fp16", "bf16", "int8"), tensor_clock_ghz=2.0,
            chip=dict(cores=4, link_ports=2)),
    _preset("trn1", rows=128, cols=128, sbuf_kib=192, formats=_V2_FORMATS, tensor_clock_ghz=2.8,
            chip=dict(cores=2, link_ports=4), system=dict(topology="torus")),
    _preset("inf2", rows=128, cols=128, sbuf_kib=192, formats=_V2_FORMATS, tensor_clock_ghz=2.8,
            chip=dict(cores=2, link_ports=2)),
    _preset("trn2", rows=128, cols=128, sbuf_kib=224, formats=_V2_FORMATS, fp8_pairs=True, transpose=True,
            tensor_clock_ghz=2.4, chip=dict(cores=8, link_ports=4), system=dict(topology="torus")),
)}
"""A one-chip system for each name; sources: AWS's NeuronCore and chip pages, except ``nano``, ``mini``, ``small``."""

_FIELDS = {field.name: (cls, field) for cls in (CoreConfig, ChipConfig, SystemConfig)
           for field in fields(cls) if field.name not in ("name", "core", "chip")}


def _parse(name, text):
    """The value that ``text`` stands for in the field ``name``."""
    kind = _FIELDS[name][1].type
    try:
        if kind is bool:
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if kind is tuple:
            items = [item for item in text.split(",") if item]
            return tuple(int(item) for item in items) if name == "fused_off" else tuple(items)
        return kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number",
                  tuple: "whole numbers joined by commas"}[kind]
        raise SpecError(name, text, wanted) from None


def parse_settings(text):
    """The overrides in ``"rows=64 formats=bf16,fp16"`` as a dictionary; a user's ``SET=``."""
    settings = {}
    for item in text.split():
        name, equals, value = item.partition("=")
        if not equals:
            raise SpecError("SET", item, 'pairs such as "rows=64 formats=bf16,fp16"')
        if name not in _FIELDS:
            raise SpecError("SET", name, choices(sorted(_FIELDS)))
        if name in settings:
            raise SpecError("SET", item, f"{name} once")
        settings[name] = _parse(name, value)
    return settings


def configure(preset="mini", settings=""):
    """The :class:`SystemConfig` of a preset with overrides.

    Parameters
    ----------
    preset : str
        A name of :data:`PRESETS`; a user's ``CONFIG=``.
    settings : str or dict
        Overrides by field name; a user's ``SET=``.

    Raises
    ------
    SpecError
        For an unknown preset or field, an impossible value, or a clash between two fields.
    """
    if preset not in PRESETS:
        raise SpecError("CONFIG", preset, choices(PRESETS))
    values = parse_settings(settings) if isinstance(settings, str) else settings
    for name in values:
        if name not in _FIELDS:
            raise SpecError("SET", name, choices(sorted(_FIELDS)))

    def pick(cls):
        return {name: value for name, value in values.items() if _FIELDS[name][0] is cls}

    system = PRESETS[preset]
    core = replace(system.chip.core, **pick(CoreConfig))
    chip = replace(system.chip, core=core, **pick(ChipConfig))
    return replace(system, chip=chip, **pick(SystemConfig))
