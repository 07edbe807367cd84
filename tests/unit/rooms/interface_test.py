#!/usr/bin/env python3
"""The interface's number (tools/interface.py) is another one when a structure is, and not when a comment is.

    interface_test.py ROOT
"""
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools"))
import interface  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        names = interface.crossing(source)
        for known in ("split/bridge.h", "split/ids/table.h", "split/threads/records.h", "split/noted_files.h", "lower/image_parts.h"):
            assert known in names, f"{known} is not among {names}"
        before = interface.number(source, names)
        table = source / "split/ids/table.h"
        text = table.read_text()
        table.write_text("// Another remark.\n" + text.replace("\n\n", "\n\n\n"))
        assert interface.number(source, names) == before, "a comment changes the number"
        table.write_text(text.replace("int32_t shown, real;", "int32_t real, shown;"))
        assert interface.number(source, names) != before, "a structure does not change the number"
        table.write_text(text)
        assert interface.number(source, names) == before
    print("passed: the interface's number")


if __name__ == "__main__":
    main()
