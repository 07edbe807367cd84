// Making all descriptors of a state again: what the kinds share while it lasts.
#pragma once

#include <string>
#include <vector>

#include "split/process/descriptors/contents.h"
#include "split/process/descriptors/operations.h"
#include "split/process/descriptors/pipes.h"
#include "split/process/descriptors/saved.h"
#include "split/process/descriptors/sockets.h"
#include "split/process/read_files.h"

namespace fermata::split::process::descriptors {

class Restore {
  public:
    Restore(const Json& state, const Limits& limits, const Reading& reading, Lines& warnings);
    // Throws Refused.
    void run();

    // Beyond all numbers of the program. Throws Refused.
    Fd up(Fd fd) const;
    // Reads as end of file.
    static Fd placeholder();
    // The description that a number has; -1 = it is free.
    int origin_of(int number) const;
    // The first number of a description, by which it is open; -1 = it could not be made.
    int made(size_t description) const { return made_.at(description); }

    Lines& warnings;
    const Reading& reading;
    Contents contents;
    Pipes pipes;
    Sockets sockets;

  private:
    void make_all();
    void give(int from, const Number& one) const;
    void give_numbers() const;
    void close_standard() const;
    void set_again() const;
    void connect();
    void drop();
    void lock_again() const;

    std::vector<Number> numbers_;  // ascending
    std::vector<Description> all_;
    std::vector<int> made_;  // one for each of them
    int beyond_;             // all numbers
};

// Flags that make sense when a file is opened again.
int reopen_flags(int flags);
// A description of its own of what this descriptor of ours has open.
Fd open_again(int fd, int flags);
// Throws Refused when another user's link led to what was opened by this path.
void check_way(int fd, const Description& one, const std::string& path);
// The same; and where everybody may put files, another one of that name may be a trap: throws Refused when it
// belongs to neither this user nor the one whom the state names.
void check_owner(int fd, const Description& one, const std::string& path);

}  // namespace fermata::split::process::descriptors
