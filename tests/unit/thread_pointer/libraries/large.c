/* As locals.c in short, with so much code that its accesses are worth a file. */
static __thread int counter __attribute__((tls_model("initial-exec"))) = 40;

__asm__(
    ".text\n"
    ".fill 100000, 1, 0xcc\n");

int count_large(int step);
int count_large(int step) {
    counter += step;
    return step > 100 ? counter : counter - 1;
}
