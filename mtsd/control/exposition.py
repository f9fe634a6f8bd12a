"""The text of `/metrics`: a status in the format that Prometheus scrapes."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from mtsd.control.exporter_names import COLUMNS, LABELS, PREFIX, labels_of
from mtsd.control.metrics import METRICS, Metric
from mtsd.control.status import AgesStatus, Status

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def metrics_text(status: Status, *, exporter_names: bool = False) -> str:
    """Return the metrics of a status, and those of this process.

    `exporter_names`: also under the names of mysqld_exporter.
    """
    registry = CollectorRegistry()
    registry.register(_OfStatus(status, exporter_names=exporter_names))
    ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


class _OfStatus(Collector):
    def __init__(self, status: Status, *, exporter_names: bool) -> None:
        self._status = status
        self._exporter_names = exporter_names

    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            yield _family(metric, self._status)
        for column in COLUMNS if self._exporter_names else ():
            value = column.value(self._status)
            if value is None:
                continue
            for name in column.names:
                says = f"{name} of SHOW REPLICA STATUS, as mtsd has it."
                family = UnknownMetricFamily(f"{PREFIX}{name}", says, labels=LABELS)
                family.add_metric(labels_of(self._status), value)
                yield family


def _family(metric: Metric, status: Status) -> Family:
    channel = status.channel
    labels = ("channel", *metric.labels)
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        ages = metric.ages(status)
        histogram.add_metric([channel], [*_buckets(ages)], ages.sum_seconds)
        return histogram
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=labels)
    for values, value in metric.samples(status):
        family.add_metric([channel, *map(_as_utf8, values)], value)
    return family


def _as_utf8(label: str) -> str:
    """Return a label that the format can hold: a name that is not UTF-8 has half characters."""
    return label.encode("utf-8", "backslashreplace").decode()


def _buckets(ages: AgesStatus) -> Iterator[tuple[str, float]]:
    """Yield the cumulative counts that the format has."""
    bounds = (*map(str, ages.bounds), "+Inf")
    total = 0
    for bound, groups in zip(bounds, ages.groups or (0,), strict=False):
        total += groups
        yield bound, total
