"""Runs cocotb benches against a design and does not believe them until the results file agrees."""

import contextlib
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import cocotb_tools.config
from cocotb_tools.runner import get_runner

from sim import cache, toolchain, verilate
from sim.errors import BenchFailed
from sim.seeds import fresh_seed

__all__ = ["BenchRun", "build_bench", "run_bench"]

_OUTPUT = Path("build") / "benches"
_LOG_LINES = 40


@dataclass(frozen=True)
class BenchRun:
    """A bench that passed: how many tests it held, its seed, and its trace where one was asked for."""

    tests: int
    seed: int
    trace: Path | None


def build_bench(emission, *, hierarchical=(), trace=False):
    """Folder of the design compiled for cocotb, from the cache or built now.

    Only the top's ports can be reached from a bench: that builds and runs faster than with everything public.
    """
    blocks = verilate.hierarchical_blocks(emission, hierarchical)
    control = verilate.control_file(f'public_flat_rw -module "{emission.top}" -port "*"', *blocks)
    arguments = ["--vpi", *verilate.OPTIMISE, *verilate.build_options(blocks, trace)]
    library = verilate.runtime()
    source = Path(cocotb_tools.config.share_dir) / "lib" / "verilator" / "verilator.cpp"
    libs = Path(cocotb_tools.config.libs_dir)

    def make(build):
        verilate.verilate(build, emission, control, arguments)
        verilate.compile_design(build)
        build.run(["g++", *verilate.compile_flags(trace), source, "obj/libVtop.a", library, f"-L{libs}",
                   f"-Wl,-rpath,{libs}", "-lcocotbvpi_verilator", "-o", emission.top], env=toolchain.environment())
        cache.keep_only(build.folder, emission.top)

    # The executable holds the path of cocotb's libraries, so another environment's is another build.
    key = verilate.build_key(emission, control=control, arguments=arguments, runtime=library.parent.name,
                             main=source.read_text(), libraries=str(libs))
    return cache.entry("bench", key, make, f"the bench of {emission.top}")


def run_bench(emission, module, *, tests=None, seed=None, waves=False, extra_env=None, hierarchical=()):
    """Run the cocotb tests of a module against a design.

    Parameters
    ----------
    emission : hdl.emit.Emission
        The design.
    module : str
        Importable name of the Python module that holds the tests.
    tests : str or sequence of str
        Names of the tests to run, a parametrised one with all its parameters; all where it is not given.
    seed : int
        For ``random`` and ``cocotb.RANDOM_SEED`` in the bench; drawn where it is not given, and printed.
    waves : bool
        Whether to write an FST trace, in a build of its own.
    extra_env : dict of str to str
        Environment variables for the bench.
    hierarchical : sequence of str
        Repeated modules to compile once each, as for ``sim.model.Model.build``.

    Returns
    -------
    BenchRun

    Raises
    ------
    BenchFailed
        A test failed, none ran, or the simulation ended without results. The message names the failed tests, the seed
        and the log, which stays in ``build/benches/<module>/``.
    """
    seed = fresh_seed() if seed is None else seed
    build = build_bench(emission, hierarchical=hierarchical, trace=waves)
    print(f"Bench {module} on {emission.top}, seed {seed}", file=sys.stderr, flush=True)
    kept = _OUTPUT.absolute() / module
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:  # the simulator is given this path, and its current folder is another
        sys.path.append(root)
    with tempfile.TemporaryDirectory(prefix="onc-bench-") as folder:
        folder = Path(folder)
        results, log, trace = folder / "results.xml", folder / "bench.log", folder / "dump.fst"
        # The runner raises or exits for failed tests in ways that depend on where it is called from; the results file
        # alone decides.
        with contextlib.suppress(RuntimeError, SystemExit):
            _runner().test(test_module=module, hdl_toplevel=emission.top, hdl_toplevel_lang="verilog", build_dir=build,
                           test_dir=folder, results_xml=str(results), log_file=str(log), seed=seed,
                           test_filter=_filter(tests),
                           test_args=["--trace", "--trace-file", str(trace)] if waves else [],
                           extra_env={"NO_COLOR": "1", **(extra_env or {})})
        problem, count = _judge(results)
        if problem or waves:
            kept.mkdir(parents=True, exist_ok=True)
        if waves and trace.exists():
            trace = shutil.move(trace, kept / trace.name)
        if problem:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:]) if log.exists() else "(no log)"
            for file in (results, log):
                if file.exists():
                    shutil.copy(file, kept)
            raise BenchFailed(f"Bench {module} on {emission.top}, seed {seed}: {problem}; log file {kept / log.name} "
                              f"ends with:\n{tail}")
    return BenchRun(count, seed, Path(trace) if waves else None)


def _filter(tests):
    if tests is None:
        return None
    names = [tests] if isinstance(tests, str) else tests
    return rf"\.({'|'.join(map(re.escape, names))})(/.*)?$"


def _runner():
    runner = get_runner("verilator")
    runner.log.setLevel("CRITICAL")  # what it has to say is in the error
    return runner


def _judge(results):
    """What is wrong with a results file, or None, and how many tests it holds."""
    if not results.is_file():
        return "the simulation ended without results", 0
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    ran = [case for case in cases if case.find("skipped") is None]
    failed = [case.get("name") for case in ran if case.find("failure") is not None or case.find("error") is not None]
    if failed:
        return f"{len(failed)} of {len(ran)} tests failed: {', '.join(failed)}", len(ran)
    if not ran:
        return "no test ran", 0
    return None, len(ran)
