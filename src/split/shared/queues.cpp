#include "split/shared/queues.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <mqueue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/proc_text.h"

namespace fermata::split::shared {
namespace {

using nlohmann::json;

std::string name_of_descriptor(int fd) {
    char text[4096];
    ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), text, sizeof text);
    std::string name(text, size > 0 ? static_cast<size_t>(size) : 0);
    constexpr std::string_view kDeleted = " (deleted)";
    if (name.ends_with(kDeleted)) name.resize(name.size() - kDeleted.size());
    return name;
}

void put(mqd_t queue, const json& messages, const std::string& name) {
    for (const json& message : messages) {
        const auto& bytes = message.at(1).get_binary();
        if (::mq_send(queue, reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                      message.at(0).get<unsigned>()) != 0)
            fail_errno("cannot put a message back into the message queue {}", name);
    }
}

// In the order in which they would be received.
json take_all(mqd_t queue, size_t longest) {
    json messages = json::array();
    std::vector<uint8_t> text(longest);
    for (;;) {
        unsigned priority = 0;
        ssize_t size = ::mq_receive(queue, reinterpret_cast<char*>(text.data()), longest, &priority);
        if (size < 0) return messages;
        messages.push_back({priority, json::binary({text.begin(), text.begin() + size})});
    }
}

}  // namespace

int somebody_to_notify(int descriptor) {
    constexpr std::string_view kKey = "NOTIFY_PID:";
    const std::string text = read_proc(fmt::format("/proc/self/fd/{}", descriptor));
    const size_t at = text.find(kKey);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + kKey.size());
}

json describe_queue(int descriptor, bool content, std::vector<std::string>& warnings) {
    std::string name = name_of_descriptor(descriptor);
    struct stat file {};
    struct mq_attr attributes {};
    if (::fstat(descriptor, &file) != 0 || ::mq_getattr(descriptor, &attributes) != 0)
        fail_errno("cannot look at the message queue {}", name);
    Fd there(::mq_open(name.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat named {};
    bool has_name = there && ::fstat(there.get(), &named) == 0 && named.st_ino == file.st_ino;
    json one = {{"name", name},
                {"named", has_name},
                {"mode", file.st_mode & 07777},
                {"uid", file.st_uid},
                {"device", file.st_dev},
                {"inode", file.st_ino},
                {"most", attributes.mq_maxmsg},
                {"longest", attributes.mq_msgsize},
                {"messages", json::array()}};
    if (!content) return one;
    if (somebody_to_notify(descriptor)) {
        if (attributes.mq_curmsgs > 0)
            fail(
                "the message queue {} holds {} messages and has somebody to notify (mq_notify): it cannot be "
                "saved before they are received",
                name, attributes.mq_curmsgs);
        warnings.push_back(fmt::format(
            "the message queue {}: who is to be notified (mq_notify) is not after a restart", name));
    }
    if (attributes.mq_curmsgs == 0) return one;
    Fd both(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!both) {
        warnings.push_back(
            fmt::format("the message queue {} cannot be read ({}): its {} messages are not saved", name,
                        std::strerror(errno), attributes.mq_curmsgs));
        return one;
    }
    one["messages"] = take_all(both.get(), static_cast<size_t>(attributes.mq_msgsize));
    put(both.get(), one["messages"], name);
    return one;
}

Fd make_queue(const json& saved, std::vector<std::string>& warnings) {
    std::string name = saved.at("name");
    bool named = saved.at("named").get<bool>();
    auto mode = saved.at("mode").get<mode_t>();
    struct mq_attr attributes {};
    attributes.mq_maxmsg = saved.at("most").get<long>();
    attributes.mq_msgsize = saved.at("longest").get<long>();
    std::string path =
        named ? name : fmt::format("/fermata-{}-{}", ::getpid(), saved.at("inode").get<ino_t>());
    constexpr int kOpen = O_RDWR | O_NONBLOCK | O_CLOEXEC;
    Fd fd(::mq_open(path.c_str(), kOpen | O_CREAT | O_EXCL, 0600, &attributes));
    if (fd && !named) ::mq_unlink(path.c_str());
    if (!fd && errno != EEXIST)
        fail_errno(
            "cannot make the message queue {} again ({} messages of {} bytes; see /proc/sys/fs/mqueue)", name,
            attributes.mq_maxmsg, attributes.mq_msgsize);
    if (!fd) {
        fd = Fd(::mq_open(path.c_str(), kOpen));
        struct stat there {};
        struct mq_attr now {};
        if (!fd || ::fstat(fd.get(), &there) != 0 || ::mq_getattr(fd.get(), &now) != 0)
            fail_errno("cannot open the message queue {}: it is somebody else's now", name);
        bool same = there.st_dev == saved.at("device").get<dev_t>() &&
                    there.st_ino == saved.at("inode").get<ino_t>() &&
                    there.st_uid == saved.at("uid").get<uid_t>();
        if ((there.st_uid != ::geteuid() && !same) || (there.st_mode & 022 & ~mode) != 0 ||
            now.mq_maxmsg != attributes.mq_maxmsg || now.mq_msgsize != attributes.mq_msgsize)
            fail(
                "the message queue {} is another one than the program's (user {}, mode {:o}, {} messages of "
                "{} "
                "bytes): remove it and restart again",
                name, there.st_uid, there.st_mode & 07777, now.mq_maxmsg, now.mq_msgsize);
        if (!same)
            warnings.push_back(
                fmt::format("the message queue {} is another one than at the checkpoint: its content is the "
                            "program's again",
                            name));
        take_all(fd.get(), static_cast<size_t>(now.mq_msgsize));
    }
    put(fd.get(), saved.at("messages"), name);
    return fd;
}

}  // namespace fermata::split::shared
