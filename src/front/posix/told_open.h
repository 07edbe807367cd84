// How a file is opened by a rank that has a copy, and by the copy.
#pragma once

#include "front/posix/private_files.h"
#include "front/posix/told_files.h"

namespace fermata::front::posix {

// `open_it(path, shadow)` opens the file at `path`, or the shadow there.
template <class Result, class Open>
Result told_open(int directory, const char* path, Wish wish, const Open& open_it) noexcept {
    if (!keeps_log() || path == nullptr || wish == Wish::nameless) return open_it(path, false);
    if (changes_by_itself(path, wish) && is_told()) {
        const Snapshot snapshot(path);
        if (snapshot.taken()) return open_it(snapshot.path(), false);
        if (snapshot.error() != 0) {
            Result none{};
            refused(&none);
            errno = snapshot.error();
            return none;
        }
    }
    if (is_own(path)) return open_it(path, false);
    if (wish != Wish::read && !is_told()) no_copy_may(path);
    if (!is_told()) return open_it(path, false);
    if (wish == Wish::append || wish == Wish::other)
        return told_private_open<Result>(directory, path, wish == Wish::append, open_it);
    Opened was;
    Result result{};
    bool here = false;
    recorded("open", &was, sizeof was, [&] {
        here = true;
        result = open_it(path, false);
        was = opened(descriptor_of(result));
    });
    if (!here) {
        if (was.error != 0)
            refused(&result);
        else if (wish == Wish::write && was.regular != 0)
            result = open_it(shadow_of(directory, path, was.size).text, true);
        else {
            if (wish == Wish::write) no_copy_may(path);
            result = open_it(path, false);
            must_be_same(descriptor_of(result), was, path);
        }
    }
    if (was.error != 0) errno = was.error;
    return result;
}

}  // namespace fermata::front::posix
