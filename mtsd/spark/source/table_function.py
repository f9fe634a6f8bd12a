"""The table-valued function `mtsd_changes`: reads in SQL, with the options as named arguments.

SELECT op, after FROM mtsd_changes(path => '/var/lib/mysql', tables => 'shop.orders')
"""

from collections.abc import Iterator
from typing import Final

from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from mtsd.spark.logs.failure import one_line
from mtsd.spark.options.options import OptionError
from mtsd.spark.source.data_source import BinlogDataSource

NAME: Final = "mtsd_changes"


class ChangesFunction:
    """All of a read in one task, as rows of Python: for the parts of a log that a person looks at.

    The shape is `changes` unless another one is given.
    """

    @staticmethod
    def analyze(*unnamed: AnalyzeArgument, **options: AnalyzeArgument) -> AnalyzeResult:
        """Return the columns. Raises UnreadableBinlogError."""
        with one_line():
            if unnamed:
                raise OptionError(f"options of {NAME} have names, as in {NAME}(path => '/logs')")
            for name, argument in options.items():
                if not argument.isConstantExpression:
                    raise OptionError(f"option {name!r} of {NAME} has to be a constant")
                if not isinstance(argument.value, str | int):
                    raise OptionError(
                        f"option {name!r} of {NAME} is a {argument.dataType.simpleString()}: it"
                        " has to be a text, a whole number, true or false"
                    )
        given = {name: argument.value for name, argument in options.items()}
        return AnalyzeResult(_source(given).schema())

    def eval(self, **options: object) -> Iterator[tuple[object, ...]]:
        """Yield the rows. Raises UnreadableBinlogError."""
        source = _source(options)
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            for batch in reader.read(partition):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _source(options: dict[str, object]) -> BinlogDataSource:
    given = {name: str(value) for name, value in options.items()}
    return BinlogDataSource({"shape": "changes"} | given)
