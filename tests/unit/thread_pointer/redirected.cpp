// A lower half whose code reaches thread-locals through GS, called as an upper thread calls it: with an FS
// base where only the canary can be read. Used by redirect_test.cpp.
//
//     redirected keep            code of all kinds, in new threads and newly loaded libraries too
//     redirected doubtful        ... then a library that needs FS comes
//     redirected doubtful-late   ... while another upper thread is in the lower half
//     redirected namespace       ... then one comes into a namespace of its own, with a libc of its own
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/log.h"
#include "split/alloc/lower_alloc.h"
#include "split/gate.h"
#include "split/thread_pointer/redirect.h"
#include "split/threads/records.h"

using namespace fermata::split;

namespace {

thread_local int t_own = 5;

[[noreturn]] void die(const char* text) {
    std::fprintf(stderr, "redirected: %s\n", text);
    _exit(99);
}

// Only its last word of 16 can be read: fs:0x28.
uint64_t upper_thread_pointer() {
    constexpr size_t kSize = 1 << 20;
    auto* area = static_cast<char*>(mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* page = area + kSize / 2;
    if (area == MAP_FAILED || mprotect(page, 4096, PROT_READ) != 0) die("mmap");
    return reinterpret_cast<uint64_t>(page) + 4096 - 0x30;
}

using Count = int();

int throw_and_catch() {
    try {
        throw std::runtime_error("thrown");
    } catch (const std::exception& error) {
        return error.what()[0];
    }
}

// Lower code: libc, libstdc++, threads, libraries.
__attribute__((noinline)) void lower_work() {
    if (t_own++ < 5) die("a thread-local of the program");
    errno = 0;
    if (std::fopen("/no/such/file", "r") != nullptr || errno != ENOENT) die("errno");
    if (throw_and_catch() != 't') die("an exception");
    void* library = dlopen(LIBRARIES "/liblocals.so", RTLD_NOW | RTLD_LOCAL);
    auto* count = library != nullptr ? reinterpret_cast<Count*>(dlsym(library, "count")) : nullptr;
    if (count == nullptr) die("dlopen");
    if (count() != 41 || count() != 42) die("a library's thread-locals");
    int in_thread = 0;
    std::thread([&] {
        if (t_own != 5) die("a new thread's thread-local");
        in_thread = count();
    }).join();
    if (in_thread != 40) die("a library's thread-locals in a new thread");
    dlclose(library);
    std::string text;
    for (int i = 0; i < 1000; ++i) text += std::to_string(i);
    if (text.size() != 2890) die("the heap");
    // Fresh copies of what needs several libraries and the resolver of symbols.
    if (std::system("true") != 0) die("system()");
}

void call_down(ThreadRecord* record, void (*work)()) {
    uint64_t fs = read_fs();
    write_fs(record->upper_fs);
    {
        Crossing crossing(record);
        work();
    }
    bool back = read_fs() == record->upper_fs;
    write_fs(fs);
    if (!back) die("the upper half's FS did not come back");
}

void load_doubtful() {
    void* library = dlopen(LIBRARIES "/libdoubtful.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) die("dlopen");
    auto* function = reinterpret_cast<uint64_t (*)()>(dlsym(library, "own_thread_pointer"));
    if (function() != reinterpret_cast<uint64_t>(pthread_self())) die("a library that needs FS");
}

void load_into_namespace() {
    void* library = dlmopen(LM_ID_NEWLM, LIBRARIES "/liblocals.so", RTLD_NOW | RTLD_LOCAL);
    auto* count = library != nullptr ? reinterpret_cast<Count*>(dlsym(library, "count")) : nullptr;
    if (count == nullptr) die("dlmopen");
    if (count() != 41 || count() != 42) die("thread-locals of a library in a namespace of its own");
}

ThreadRecord* be_upper() {
    ThreadRecord* record = threads::find_or_take_record(gettid());
    threads::set_lower_side(record, read_fs());
    record->upper_fs = upper_thread_pointer();
    be_known_as(record);
    return record;
}

std::atomic<bool> below, finish;
void stay_below() {
    below = true;
    while (!finish) usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) die("usage: redirected keep|doubtful|doubtful-late|namespace");
    const std::string what = argv[1];
    fermata::start_log("redirected");
    prepare_lower();
    thread_pointer::redirect();
    threads::create_table();
    ThreadRecord* record = be_upper();
    if (std::getenv("FERMATA_THREAD_POINTER") == nullptr) {
        if (!thread_pointer::why_switched().empty()) die(thread_pointer::why_switched().c_str());
        if (record->fs_below != 0) die("FS is written although nothing needs it");
    }
    call_down(record, lower_work);
    if (what == "doubtful") {
        call_down(record, load_doubtful);
        if (thread_pointer::why_switched().find("libdoubtful.so") == std::string::npos) die("why_switched");
        if (record->fs_below != record->lower_fs) die("FS is not written");
        call_down(record, load_doubtful);
    }
    if (what == "namespace") {
        call_down(record, load_into_namespace);
        if (thread_pointer::why_switched().find("namespace") == std::string::npos) die("why_switched");
        call_down(record, lower_work);
    }
    if (what == "doubtful-late") {
        std::thread other([] { call_down(be_upper(), stay_below); });
        while (!below) usleep(1000);
        call_down(record, load_doubtful);
        finish = true;
        other.join();
    }
    std::puts("good");
    return 0;
}
