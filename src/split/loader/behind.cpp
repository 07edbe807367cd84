#include "split/loader/behind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/fd.h"
#include "files/place.h"

namespace fermata::split {
namespace {

constexpr size_t kLongestScript = 256 << 10;
constexpr size_t kMostWords = 2000;
constexpr int kDepth = 3;  // scripts that start scripts

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size();) {
        size_t begin = text.find_first_not_of(" \t\r\n;|&()<>`\"'$={}", at);
        if (begin == std::string::npos) break;
        at = text.find_first_of(" \t\r\n;|&()<>`\"'$={}", begin);
        if (at == std::string::npos) at = text.size();
        words.push_back(text.substr(begin, at - begin));
    }
    return words;
}

std::string text_of(const std::string& path) {
    files::Opened file = files::open_regular(path, O_RDONLY);
    struct stat st {};
    if (!file || ::fstat(file.fd.get(), &st) != 0 || size_t(st.st_size) > kLongestScript) return "";
    std::string text(size_t(st.st_size), 0);
    text.resize(size_t(std::max<ssize_t>(::pread(file.fd.get(), text.data(), text.size(), 0), 0)));
    return text.find('\0') == std::string::npos ? text : "";
}

class Search {
  public:
    explicit Search(const std::string& front_dir) : front_dir_(front_dir) {}

    std::optional<ProgramCheck> in(const std::vector<std::string>& words, int depth) {
        for (const std::string& word : words) {
            if (word.empty() || word[0] == '-' || word[0] == '#' || !seen_.insert(word).second) continue;
            if (seen_.size() > kMostWords) return {};
            ProgramCheck check = inspect_program(word, front_dir_);
            if (!check.error.empty()) {
                // Not executable, but perhaps what a shell is to read (`sh run.sh`), or to run (`sh -c '…'`).
                std::vector<std::string> inner =
                    words_of(word.find(' ') == std::string::npos ? text_of(word) : word);
                if (depth > 0)
                    if (auto found = in(inner, depth - 1)) return found;
                continue;
            }
            if (check.abi != MpiAbi::none) return check;
            if (!check.prefix.empty() && depth > 0)
                if (auto found = in(words_of(text_of(check.program)), depth - 1)) return found;
        }
        return {};
    }

  private:
    const std::string& front_dir_;
    std::set<std::string> seen_;
};

}  // namespace

std::optional<ProgramCheck> program_behind(const std::vector<std::string>& command,
                                           const ProgramCheck& starter, const std::string& front_dir) {
    Search search(front_dir);
    std::vector<std::string> words(command.begin() + 1, command.end());
    if (auto found = search.in(words, kDepth)) return found;
    if (starter.prefix.empty()) return {};
    return search.in(words_of(text_of(starter.program)), kDepth);
}

}  // namespace fermata::split
