"""`mtsd plan`: which policy, workers, batches and binds would suit a load."""

import argparse
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from mtsd.binlog.groups.grouper import Grouper
from mtsd.cli.arguments import (
    Subparsers,
    add_configuration,
    load_configuration,
    named_path,
    refuse_settings,
    seconds,
    spark_master,
    whole,
)
from mtsd.cli.complaint import complain
from mtsd.cli.listing.listed_files import ListedFile, files_of_source, local_files
from mtsd.cli.live.progress import ProgressLines
from mtsd.cli.output import OutputError, flush, print_json, print_line
from mtsd.config import Settings
from mtsd.config.settings import ReplicaSettings
from mtsd.model.errors import BinlogError, MtsdError
from mtsd.model.outcome.exit_status import ExitStatus
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.plan.backlog import backlog_of
from mtsd.plan.calibration import TYPICAL, Point, PointsError, calibrated
from mtsd.plan.candidate import (
    DEFAULT_SETTINGS,
    Candidate,
    CommonSettings,
    candidates,
    not_simulated,
)
from mtsd.plan.costs import Machines
from mtsd.plan.load import binds_worth_a_try, load_of
from mtsd.plan.page import page
from mtsd.plan.plan import FittedPoint, Plan
from mtsd.plan.points import points_json, read_points
from mtsd.plan.replayed_group import ReplayedGroup, repeated
from mtsd.plan.table import lines
from mtsd.replica.core.filters import rules_of
from mtsd.schedule.batches.alone import AloneRule

_WORKERS = (1, 2, 4, 8, 16)
_BATCHES = (1, 32, 512)
_GROUPS = 200_000
_SAMPLE = 60_000
_EVENTS_AT_ONCE = 4096
_MOST_WORKERS = 1024
_MOST_GROUPS = 524_280
_MOST_PROCESSORS = 4096
_LONGEST_S = 86_400.0
_MISSING = "mtsd plan needs {name}: install mtsd with its extra 'plan' (pip install '.[plan]')"

_EXAMPLE = """\
example:
  mtsd plan /var/lib/mysql/binlog.0000*                    # ratios only: nothing is measured
  mtsd plan --config config.toml --measure 20 --points points.json --html plan.html
  mtsd plan --config config.toml --points points.json      # without measuring again
  mtsd plan --record load.parquet --points status.json --workers 1,2,4,8 --json

--measure runs the daemon of the configuration three times for so many seconds, without pin and
weigh: it replicates, from where the last one stopped, and needs a backlog. How long that lasts is
told first, and each point is kept. Points are also what `mtsd status --json` prints.

exit status: 0 done; 2 bad usage or configuration, a file cannot be opened, or something is missing;
3 a file is damaged, the source cannot be asked, or the daemon could not be measured
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "plan",
        description="Record the groups of a load, simulate how each configuration would apply them,"
        " and recommend one. Needs the extra `plan`.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=named_path,
        metavar="FILE",
        help="a binary log file; with --config the name of one on the source, or none for all",
    )
    add_configuration(parser, default="default: none, FILEs are read")
    parser.add_argument(
        "--record",
        type=named_path,
        metavar="PARQUET",
        help="keep the recorded groups in this file, or use it if it is there",
    )
    parser.add_argument(
        "--points",
        type=named_path,
        action="append",
        default=[],
        metavar="JSON",
        help="measured points, or a status of a daemon; with --measure written there",
    )
    parser.add_argument(
        "--measure",
        type=seconds(0.1, _LONGEST_S),
        metavar="SECONDS",
        help="measure three points, each so long",
    )
    for name, default, most, what in (
        ("--workers", _WORKERS, _MOST_WORKERS, "parallel_workers to try"),
        ("--batches", _BATCHES, _MOST_GROUPS, "batch_groups to try"),
    ):
        shown = ",".join(map(str, default))
        parser.add_argument(
            name,
            type=_numbers(most),
            default=default,
            metavar="N,N",
            help=f"{what} (default: {shown})",
        )
    parser.add_argument(
        "--groups",
        type=whole(0),
        default=_GROUPS,
        metavar="N",
        help=f"simulate the first N groups, 0: all (default: {_GROUPS})",
    )
    parser.add_argument(
        "--processors",
        type=whole(1, _MOST_PROCESSORS),
        default=os.cpu_count() or 1,
        metavar="N",
        help="of the daemon's machine (default: this one's)",
    )
    parser.add_argument(
        "--target-processors",
        type=whole(1, _MOST_PROCESSORS),
        metavar="N",
        help="of the target's machine, if that is another (default: the daemon's own)",
    )
    parser.add_argument(
        "--master", type=spark_master, default="local[*]", help="Spark's (default: local[*])"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--html", type=named_path, metavar="FILE", help="write a page with plots")
    parser.add_argument("--plots", type=named_path, metavar="FOLDER", help="write plots as PNG")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plan, print, and return the exit status."""
    if args.config is None and not args.files and not _recorded(args):
        return complain(
            "name a FILE, the source with --config, or a --record that is there",
            ExitStatus.BAD_USAGE,
        )
    if args.config is None:
        refuse_settings(args)
    if args.measure and args.config is None:
        return complain("--measure needs --config: it runs that daemon", ExitStatus.BAD_USAGE)
    wrong = _unwritable(args)
    if wrong:
        return complain(wrong, ExitStatus.BAD_USAGE)
    try:
        plan = _planned(args)
        if args.json:
            print_json(plan.to_json())
        else:
            for line in lines(plan):
                print_line(line)
        flush()
        if args.html or args.plots:
            _draw(plan, args.html, args.plots)
    except ModuleNotFoundError as error:
        name = str(error.name).partition(".")[0]
        return complain(_MISSING.format(name=name), ExitStatus.BAD_USAGE)
    except (BrokenPipeError, OutputError):
        raise
    except OSError as error:
        return complain(error, ExitStatus.BAD_USAGE)
    except PointsError as error:
        return complain(error, ExitStatus.BAD_USAGE)
    except MtsdError as error:
        return complain(error, ExitStatus.NEEDS_PERSON)
    return ExitStatus.DONE


def _unwritable(args: argparse.Namespace) -> str:
    """Return what could not be written after all the work, "" if nothing."""
    points = args.points[:1] if args.measure else []
    for path in (args.html, *points):
        if path is not None and not path.absolute().parent.is_dir():
            return f"{path} cannot be written: there is no folder {path.parent}"
    if args.plots is not None and args.plots.exists() and not args.plots.is_dir():
        return f"--plots {args.plots} is no folder"
    return ""


def _planned(args: argparse.Namespace) -> Plan:
    # Imported here, so that other commands need neither Spark nor the time to import it.
    from mtsd.spark.plan.group_record import count_of, replayed_groups  # noqa: PLC0415
    from mtsd.spark.plan.local_session import spark_session  # noqa: PLC0415
    from mtsd.spark.plan.replay import replay  # noqa: PLC0415

    settings = load_configuration(args).settings if args.config else None
    points = [] if args.measure else _read(args.points)
    with ProgressLines() as progress, TemporaryDirectory(prefix="mtsd-plan-") as folder:
        record = args.record or Path(folder, "groups.parquet")
        if not record.exists():
            _record(args, record, progress)
        path = str(record.resolve())
        count = count_of(path)
        if not count:
            raise MtsdError(f"{record} has no groups: there is nothing to plan for")
        most = min(count, args.groups) if args.groups else count
        progress.say("counting the load")
        load = load_of(replayed_groups(path, most))
        machines = Machines(args.processors, args.target_processors)
        common = DEFAULT_SETTINGS if settings is None else _common(settings.replica)
        if args.measure and settings is not None:
            load_sample = list(islice(replayed_groups(path, most), _SAMPLE))
            progress.say(_reported_backlog(args.measure, settings, load_sample, machines, common))
            points = _measured(args, settings, progress)
        costs, fits = TYPICAL, tuple[FittedPoint, ...]()
        if points:
            progress.say("finding costs that fit to what was measured")
            again = repeated(partial(replayed_groups, path, most), _SAMPLE)
            sample = list(islice(again, _SAMPLE))
            costs, fits = calibrated(points, sample, machines, common)
        # Transactions that keep their own GTIDs are not combined.
        preserves = settings is not None and settings.target.gtid == "preserve"
        batches = (1,) if preserves else args.batches
        tried = candidates(args.workers, batches, binds_worth_a_try(load))
        progress.say("starting Spark")
        with spark_session("mtsd plan", args.master) as spark:
            results, missing = replay(
                spark, path, _longest_first(tried), costs, machines, settings=common, most=most,
                progress=lambda done, of: progress.count("simulating", done, of, "configurations"),
            )  # fmt: skip
    results.sort(key=lambda result: tried.index(result.candidate))
    if settings is not None:
        replica = settings.replica
        missing += not_simulated(
            replica.consistency,
            replica.split_transactions,
            rules=str(rules_of(settings.filter)),
            distributed=bool(replica.pin or replica.weigh),
            gtid=settings.target.gtid,
        )
    return Plan(load, most, costs, machines, fits, tuple(results), tuple(missing))


def _common(replica: ReplicaSettings) -> CommonSettings:
    return CommonSettings(
        replica.batch_bytes,
        replica.pending_jobs_size_max,
        replica.checkpoint_group,
        AloneRule(ddl=replica.ddl == "alone", statements=replica.statements == "alone"),
    )


def _longest_first(tried: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates in an order that leaves no long-running one for the end."""
    return sorted(tried, key=lambda one: one.batch_groups)


def _reported_backlog(
    seconds: float,
    settings: Settings,
    sample: Sequence[ReplayedGroup],
    machines: Machines,
    common: CommonSettings,
) -> str:
    """Return in words how long the backlog lasts that is about to be measured."""
    from mtsd.cli.backlog_size import backlog_size  # noqa: PLC0415
    from mtsd.cli.calibration_run import three_points  # noqa: PLC0415

    backlog = backlog_of(
        backlog_size(settings), three_points(settings), seconds, sample, machines, common
    )
    return str(backlog)


def _measured(
    args: argparse.Namespace, settings: Settings, progress: ProgressLines
) -> Sequence[Point]:
    """Measure, and write each point at once: another one may fail."""
    from mtsd.cli.calibration_run import measure  # noqa: PLC0415

    options = ["--config", str(args.config)]
    for key, value in args.overrides:
        options += ["--set", f"{key}={value}"]

    def keep(points: Sequence[Point]) -> None:
        for path in args.points[:1]:
            path.write_text(points_json(points), "utf-8")

    return measure(options, settings, args.measure, progress.say, keep)


def _read(paths: Sequence[Path]) -> Sequence[Point]:
    points = []
    for path in paths:
        try:
            points += read_points(path.read_text("utf-8"))
        except PointsError as error:
            raise PointsError(f"{path}: {error}") from error
        except UnicodeDecodeError:
            raise PointsError(f"{path}: it is no text in UTF-8") from None
    return points


def _recorded(args: argparse.Namespace) -> bool:
    return args.record is not None and args.record.exists()


def _record(args: argparse.Namespace, record: Path, progress: ProgressLines) -> None:
    from mtsd.spark.plan.group_record import GroupRecorder  # noqa: PLC0415

    if args.config is None:
        files: Sequence[ListedFile] = local_files(args.files)
    else:
        files = files_of_source(load_configuration(args).settings, args.files)
    began = time.monotonic()
    most = args.groups or None
    with _without_collector(), GroupRecorder(record) as recorder:
        number = 1
        for file in files:
            grouper = Grouper(
                start=Position(file.name, FIRST_EVENT),
                next_number=number,
                hold_bytes=1 << 20,
                chunk_bytes=1 << 20,
                checksums=False,
                referred_in={},
            )
            events = file.events()
            while piece := list(islice(events, _EVENTS_AT_ONCE)):
                try:
                    recorder.add(grouper.groups(piece))
                except BinlogError as error:
                    raise MtsdError(f"{file.name}: {error}") from error
                progress.count("recording", recorder.groups, None, "groups")
                if most and grouper.next_number > most:
                    break
            number = grouper.next_number
            if most and number > most:
                break
    seconds = time.monotonic() - began
    progress.say(
        f"recorded {recorder.groups:,} groups in {seconds:.1f} s,"
        f" {recorder.groups / max(seconds, 1e-6):,.0f} a second"
    )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Collect garbage rarely: groups form no cycles, and collecting takes a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _draw(plan: Plan, html: Path | None, folder: Path | None) -> None:
    from mtsd.spark.plan.plan_plots import plots  # noqa: PLC0415

    images = plots(plan)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, image in images.items():
            (folder / f"{name}.png").write_bytes(image)
    if html is not None:
        html.write_text(page(plan, images), "utf-8")


def _numbers(most: int) -> Callable[[str], tuple[int, ...]]:
    each = whole(1, most)

    def parsed(text: str) -> tuple[int, ...]:
        try:
            return tuple(each(part) for part in text.split(","))
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(
                f"{text[:80]!r} is not a list of whole numbers from 1 to {most}: 1,2,4"
            ) from None

    return parsed
