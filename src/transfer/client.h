// Client reads files of generations from where another node keeps them. One connection, one thread; several
// Clients are several streams. After an Error a Client is of no use any more.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/medium.h"
#include "files/folder.h"
#include "transfer/stream.h"

namespace fermata::transfer {

class Client {
  public:
    // `addresses`: of the other node's Server; `place`: whose that is, for messages. Throws Error, as all
    // here.
    Client(const std::string& addresses, const NodePlace& place, const wire::Key& key, Patience patience);

    // The files of a generation; of one that is not there, none.
    std::vector<File> list(Generation generation);
    // A part of a file, less where the file ends earlier, piece by piece in order; how long the file is.
    using Take = std::function<void(View piece, uint64_t offset)>;
    uint64_t read(Generation generation, const std::string& name, uint64_t offset, uint64_t length,
                  const Take& take);
    // The same, into memory: exactly `length` bytes.
    void read(Generation generation, const std::string& name, uint64_t offset, void* to, size_t length);
    // The same in two halves: questions may be asked while others are not answered, in the order in which the
    // answers are taken then. Nothing else is asked meanwhile.
    struct Part {
        Generation generation;
        std::string name;
        uint64_t offset = 0;
        size_t length = 0;
        bool operator==(const Part&) const = default;
    };
    void ask_for(const Part& part);
    void take(const Part& part, void* to);
    Sum digest(Generation generation, const std::string& name);

  private:
    Stream::Frame ask(const Question& question);
    uint64_t take_part(const Part& part, const Take& take);
    Stream::Frame answer();

    const std::string from_;  // "the memory of a"
    Stream stream_;
};

}  // namespace fermata::transfer
