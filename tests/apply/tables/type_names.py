"""Types of columns as a person writes them."""

FEW = (
    "TINYINT", "INT", "BIGINT UNSIGNED", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(12,2)",
    "DECIMAL(10,4)", "CHAR(10)", "VARCHAR(10)", "VARCHAR(300)", "TEXT", "DATE", "DATETIME(3)",
)  # fmt: skip
MANY = (
    *FEW, "SMALLINT", "MEDIUMINT", "DECIMAL(9,6)", "CHAR(255) CHARACTER SET latin1",
    "CHAR(255) CHARACTER SET utf8mb4", "CHAR(10) CHARACTER SET latin1", "BINARY(40)",
    "VARBINARY(40)", "VARCHAR(40) CHARACTER SET latin1", "TINYTEXT", "TINYBLOB", "BLOB",
    "LONGTEXT", "MEDIUMBLOB", "BIT(1)", "BIT(8)", "BIT(17)", "YEAR", "TIME", "TIME(6)",
    "DATETIME", "TIMESTAMP NULL", "TIMESTAMP(6) NULL", "ENUM('a','b''c')", "ENUM('a')",
    "SET('a','b')", "SET('1','2','3','4','5','6','7','8','9')", "JSON", "POINT", "GEOMETRY",
    "VECTOR(3)", "VECTOR(5)", "VARBINARY(20)",
    "ENUM(" + ",".join(f"'{n}'" for n in range(300)) + ")",
)  # fmt: skip
