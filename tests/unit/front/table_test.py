"""The table of functions holds together: what the generators rely on."""

from fmgen import extensions, front_c, headers, passthrough, table


def check(condition, text):
    if not condition:
        raise SystemExit("table: " + text)


names = [f.name for f in table.functions()]
check(len(names) == len(set(names)), "a function appears twice")
for f in table.functions():
    if f.alias:
        check(table.has_function(f.alias), f"{f.name} is an alias of nothing")
        target = table.function(f.internal)
        check(len(f.params) == len(table.widened_params(target)), f"{f.name}: other parameters than {target.name}")
        for p, w in zip(f.params, table.widened_params(target)):
            check(p.handle == w.handle, f"{f.name}: parameter {p.name} has another kind in {target.name}")
    if f.large:
        check(table.has_function(f.name + "_c"), f"{f.name} says it has a large-count variant")
    check(any(f.chapter in c for _, c in front_c.PARTS), f"{f.name}: no file for chapter {f.chapter}")
std = [c.std for c in table.constants() if c.cls.startswith("handle:")]
check(len(std) == len(set(std)) and max(std) < 1024, "predefined handles must be different and below 1024")
sizes = [n for _, n in table.openmpi_data_symbols()]
for c in table.constants():
    if c.cls.startswith("handle:") and c.openmpi:
        check(c.openmpi[1:] in sizes or c.openmpi[1:] in front_c.NO_SIZE["openmpi"], f"{c.openmpi} has no size")
entries = [f.short for f in table.table_functions()] + [e.name for e in extensions.EXTENSIONS]
check(len(entries) == len(set(entries)), "an entry of the Table appears twice")
# Same input, same output: builds are reproducible.
check(headers.table_header() == headers.table_header() and passthrough.pass_source() == passthrough.pass_source(),
      "generation is not deterministic")
