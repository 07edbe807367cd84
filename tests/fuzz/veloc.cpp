// VeloC's interface: what it has saved, and its configuration. What is read is written again as the same.
#include "api/veloc_blob.h"
#include "api/veloc_words.h"
#include "base/error.h"
#include "fuzz.h"

namespace fermata::fuzz {
namespace {

std::string text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

Bytes packed(const api::VelocBlob& blob) {
    Bytes bytes(blob.size());
    blob.pack(reinterpret_cast<char*>(bytes.data()));
    return bytes;
}

api::VelocBlob unpacked(Input input) {
    return api::VelocBlob::unpacked(reinterpret_cast<const char*>(input.data()), input.size());
}

Verdict run_veloc_blob(Input input) {
    try {
        api::VelocBlob blob = unpacked(input), again = unpacked(packed(blob));
        require(again.regions == blob.regions && again.files == blob.files,
                "what was saved was changed by reading it");
        require(packed(blob).size() == input.size(), "bytes were passed over");
        return Verdict::accepted;
    } catch (const Error& error) {
        require(error.code() == ExitCode::damaged, "a refusal with another exit code");
        return Verdict::refused;
    }
}

std::vector<Bytes> veloc_blob_seeds() {
    api::VelocBlob both, none;
    both.regions = {{-1, "abc"}, {0, ""}, {7, std::string(300, 'x')}};
    both.files = {{"a.txt", "content"}, {"sub/b", ""}};
    return {packed(both), packed(none)};
}

Verdict run_veloc_words(Input input) {
    try {
        api::VelocWords words = api::parse_veloc_words(text_of(input), "veloc.cfg");
        require(!words.scratch.empty() && !words.persistent.empty(), "a folder has no name");
        api::VelocWords again = api::parse_veloc_words(
            "scratch = " + words.scratch + "\npersistent = " + words.persistent +
                "\nmax_versions = " + std::to_string(words.versions) + "\nfermata = " + words.options + "\n",
            "again");
        require(again.scratch == words.scratch && again.persistent == words.persistent &&
                    again.versions == words.versions && again.options == words.options,
                "the words were changed by writing them");
        return Verdict::accepted;
    } catch (const Error& error) {
        require(error.code() == ExitCode::usage && std::string(error.what()).starts_with("veloc.cfg:"),
                std::string("an unclear refusal: ") + error.what());
        return Verdict::refused;
    }
}

std::vector<Bytes> veloc_words_seeds() {
    return {
        bytes_of("scratch = /tmp/s\npersistent=/p q\nmax_versions = 3\nmode = async\n"),
        bytes_of("# c\n[x]\n; y\r\nscratch =\t s \r\npersistent = p\r\nfermata = memory=buddy,flush=2\nec "
                 "= 1\n")};
}

}  // namespace

const Target veloc_blob{"veloc_blob", run_veloc_blob, nullptr, veloc_blob_seeds, nullptr};
const Target veloc_words{"veloc_words", run_veloc_words, nullptr, veloc_words_seeds, nullptr};

}  // namespace fermata::fuzz
