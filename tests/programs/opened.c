/* Has the file `opened` open and the file `mapped` mapped, both for reading, over the moment of the
 * checkpoint. */
#include <fcntl.h>
#include <sys/mman.h>

#include "hold.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int opened = open("opened", O_RDONLY), file = open("mapped", O_RDONLY);
    CHECK(opened >= 0 && file >= 0);
    const char* mapped = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
    CHECK(mapped != MAP_FAILED && close(file) == 0);
    char text[16] = "";
    CHECK(read(opened, text, 4) == 4 && memcmp(text, "open", 4) == 0 && memcmp(mapped, "mapped", 6) == 0);
    hold();
    CHECK(read(opened, text, 5) == 5 && memcmp(text, "ed one", 5) == 0 && memcmp(mapped, "mapped", 6) == 0);
    verdict("opened");
    MPI_Finalize();
    return 0;
}
