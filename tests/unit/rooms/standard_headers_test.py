#!/usr/bin/env python3
"""Who uses functions of <algorithm> or <numeric> includes them: newer standard libraries bring them no more with others
(libstdc++ 14 of Debian 13)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[3]
FOLDERS = ("src", "tests", "bench", "examples", "tools")
FUNCTIONS = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal equal_range fill fill_n "
                 "find find_if find_if_not for_each generate includes is_sorted lexicographical_compare lower_bound max "
                 "max_element merge min min_element minmax_element mismatch none_of nth_element partition remove remove_if "
                 "replace reverse rotate search set_difference set_intersection set_union shuffle sort stable_sort transform "
                 "unique upper_bound",
    "numeric": "accumulate exclusive_scan gcd inclusive_scan inner_product iota lcm partial_sum reduce",
}
# std::remove of a path is <cstdio>'s.
OTHERS = re.compile(r"std::remove\([^,()]*(?:\([^()]*\))?\)")


def main():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in (".cpp", ".h")]
    missing = []
    for file in files:
        name = file.relative_to(ROOT)
        text = OTHERS.sub("", file.read_text())
        for header, functions in FUNCTIONS.items():
            used = re.search(rf"std::(?:ranges::)?({'|'.join(functions.split())})\s*(?:<[^>()]*>)?\(", text)
            if used and f"#include <{header}>" not in text:
                missing.append(f"{name} uses {used[0]}…) without <{header}>")
    print("\n".join(missing) or f"passed: {len(files)} files")
    return bool(missing) or not files


if __name__ == "__main__":
    sys.exit(main())
