// One end of a connection of the tree: a non-blocking socket, frames out, messages in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "wire/frame.h"

namespace fermata::tree {

int64_t now_ms();  // CLOCK_MONOTONIC

// Counts of what has gone through a connection.
struct Traffic {
    uint64_t messages_in = 0, messages_out = 0, bytes_in = 0, bytes_out = 0;
    Traffic& operator+=(const Traffic& other) {
        messages_in += other.messages_in;
        messages_out += other.messages_out;
        bytes_in += other.bytes_in;
        bytes_out += other.bytes_out;
        return *this;
    }
};

class Channel {
  public:
    Channel(Fd socket, uint32_t max_payload, std::unique_ptr<wire::Seal> out = nullptr,
            std::unique_ptr<wire::Seal> in = nullptr);
    Channel(Channel&&) = default;
    Channel& operator=(Channel&&) = default;

    int fd() const { return socket_.get(); }
    // For poll; before that, all that was put is written.
    short events();
    // Reads what has arrived and writes what is queued.
    void serve(short revents);
    // Limits messages that come in from now on.
    void allow(uint32_t max_payload) { in_.allow(max_payload); }
    void feed(const std::string& bytes) { in_.feed(bytes.data(), bytes.size()); }

    std::optional<wire::Message> receive();
    // Never blocks; a peer that does not read 128 MiB is given up.
    void send(const wire::Message& message);
    // The same, but it is written with the next that is sent, or by events(): one call of the kernel for all
    // that is said in a turn.
    void put(const wire::Message& message);
    // The same, of a message that was encoded for many channels, which are not sealed.
    void put(const wire::Bytes& frame);
    bool has_unwritten() const { return written_ < out_.size(); }
    // Waits until all is written, at most `ms`.
    void flush(int ms);
    // True once the peer is gone or broke the format; what arrived before can still be received.
    bool closed() const { return closed_ || in_.broken(); }
    // True when the peer, or its kernel, has closed it: nothing else says so much of the peer.
    bool peer_has_ended() const { return peer_has_ended_; }
    const std::string& error() const { return in_.error(); }
    const Traffic& traffic() const { return traffic_; }
    // Since when the other machine has confirmed nothing of what is on its way to it, ms; 0: nothing is. A
    // machine confirms for a process that stands still, too.
    int64_t unconfirmed_ms() const;

  private:
    void queue(const wire::Bytes& frame);
    void read_some();
    void write_some();
    Fd socket_;
    std::unique_ptr<wire::Seal> out_seal_, in_seal_;
    wire::Decoder in_;
    wire::Bytes out_;
    size_t written_ = 0;
    bool closed_ = false, peer_has_ended_ = false;
    Traffic traffic_;
};

}  // namespace fermata::tree
