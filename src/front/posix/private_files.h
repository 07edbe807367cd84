// Files that the program of a rank with a copy both reads and writes, or appends to. When it opens one the
// copy is told what is in it, and has that in memory (split/private_files.h); when it closes one, what is in
// it then: another process may have written it in between, which the copy cannot know.
#pragma once

#include "front/posix/told_files.h"
#include "split/private_files.h"

namespace fermata::front::posix {

split::PrivateFiles* private_files() noexcept;

// An open of such a file, as its rank has seen it: facts, and the bytes of a file that is not long.
class ToldOpen {
  public:
    ToldOpen() noexcept;
    ~ToldOpen();
    ToldOpen(const ToldOpen&) = delete;
    ToldOpen& operator=(const ToldOpen&) = delete;

    // `open` opens the file for the rank, and returns a descriptor of it.
    template <class Open>
    void by(bool appends, const Open& open) noexcept {
        size_t size = kRoom;
        recorded_up_to("open", told_, &size, [&] {
            here_ = true;
            size = look(open(), appends);
        });
    }
    bool here() const { return here_; }
    const Opened& was() const { return told_->was; }
    // For the copy's program; ends the copy where there is none.
    ShadowPath shadow(int directory, const char* path, bool appends) const noexcept;

  private:
    struct Told {
        Opened was;
        int64_t bytes;  // that follow; -1: too many
    };
    static constexpr size_t kMostTold = 4 << 20, kRoom = kMostTold + sizeof(Told);
    size_t look(int descriptor, bool appends) noexcept;

    Told* told_;
    bool here_ = false;
};

// A file whose name the library chooses (mkstemp): `make` writes it to `name`, which has room for it.
struct Temporary {
    const void* context;
    int (*make)(const void* context);
};
int told_temporary(char* name, int flags, Temporary make) noexcept;
template <class Make>
int made_temporary(char* name, int flags, const Make& make) noexcept {
    return told_temporary(name, flags,
                          {&make, [](const void* f) { return (*static_cast<const Make*>(f))(); }});
}

// Before a descriptor is closed.
void told_close(int descriptor) noexcept;
// True: the program has the shadow of a private file behind the descriptor, or such a file itself.
bool is_private(int descriptor) noexcept;
// After the copy was told that its rank has given a file another name, or taken it away (`to` null).
void name_changed(int from_at, const char* from, int to_at, const char* to) noexcept;

template <class Result, class Open>
Result told_private_open(int directory, const char* path, bool appends, const Open& open_it) noexcept {
    ToldOpen told;
    Result result{};
    told.by(appends, [&] {
        result = open_it(path, false);
        return descriptor_of(result);
    });
    if (!told.here()) {
        if (told.was().error != 0)
            refused(&result);
        else
            result = open_it(told.shadow(directory, path, appends).text, true);
    }
    if (told.was().error != 0) errno = told.was().error;
    return result;
}

}  // namespace fermata::front::posix
