// The kinds of open descriptors, and the word for each in the saved state.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace fermata::split::process::descriptors {

enum class Kind {
    inherited,  // of the launcher: 0, 1, 2 and duplicates of them
    file,       // regular, with a name
    removed,    // regular, without its name
    memfd,
    queue,  // POSIX message queue
    directory,
    removed_directory,
    device,
    pipe,
    fifo,  // pipe with a name
    socket,
    eventfd,
    timerfd,
    signalfd,
    epoll,
    inotify,
    pidfd,  // of this process
    lost,   // cannot be held: reads as end of file
};

struct KindWord {
    Kind kind;
    std::string_view word;
};
inline constexpr std::array kKindWords = {
    KindWord{Kind::inherited, "inherited"},
    KindWord{Kind::file, "file"},
    KindWord{Kind::removed, "removed"},
    KindWord{Kind::memfd, "memfd"},
    KindWord{Kind::queue, "queue"},
    KindWord{Kind::directory, "directory"},
    KindWord{Kind::removed_directory, "removed_directory"},
    KindWord{Kind::device, "device"},
    KindWord{Kind::pipe, "pipe"},
    KindWord{Kind::fifo, "fifo"},
    KindWord{Kind::socket, "socket"},
    KindWord{Kind::eventfd, "eventfd"},
    KindWord{Kind::timerfd, "timerfd"},
    KindWord{Kind::signalfd, "signalfd"},
    KindWord{Kind::epoll, "epoll"},
    KindWord{Kind::inotify, "inotify"},
    KindWord{Kind::pidfd, "pidfd"},
    KindWord{Kind::lost, "lost"},
};

constexpr std::string_view word_of(Kind kind) {
    for (const KindWord& one : kKindWords)
        if (one.kind == kind) return one.word;
    return {};
}

constexpr std::optional<Kind> kind_of(std::string_view word) {
    for (const KindWord& one : kKindWords)
        if (one.word == word) return one.kind;
    return {};
}

}  // namespace fermata::split::process::descriptors
