/* steady as a program of a Go whose calls look otherwise: Go's note, and no call of Go's. */
__asm__(
    ".pushsection .note.go.buildid, \"a\", @note\n"
    ".long 4, 4, 4\n"
    ".asciz \"Go\"\n.balign 4\n"
    ".ascii \"none\"\n"
    ".popsection\n");
#include "steady.c"
