#include "image/key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/image.h"

namespace fermata::image {
namespace {

constexpr size_t kDigits = 64;
constexpr const char* kHowTo = "make one with: (umask 077; openssl rand -hex 32 > FILE)";

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
    throw KeyError(fmt::format(format, std::forward<Args>(args)...));
}

void start_sodium() {
    if (::sodium_init() < 0) refuse("libsodium cannot start");
}

}  // namespace

KeyPointer Key::from_file(const std::string& path) {
    start_sodium();
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) refuse("the key file {} cannot be opened: {}", path, std::strerror(errno));
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) refuse("the key file {}: {}", path, std::strerror(errno));
    if (!S_ISREG(st.st_mode)) refuse("the key file {} is not a file", path);
    if (st.st_mode & 077)
        refuse("others than its owner may use the key file {} (mode {:o}): chmod 600 {}", path,
               st.st_mode & 07777, path);
    if (st.st_uid != ::geteuid() && st.st_uid != 0) refuse("the key file {} is another user's", path);
    std::array<char, kDigits + 2> text{};
    ssize_t n = ::read(fd.get(), text.data(), text.size());
    std::array<uint8_t, 32> bytes{};
    size_t size = 0;
    bool ends = n == kDigits || (n == kDigits + 1 && text[kDigits] == '\n');
    bool good = ends && ::sodium_hex2bin(bytes.data(), bytes.size(), text.data(), kDigits, nullptr, &size,
                                         nullptr) == 0;
    ::sodium_memzero(text.data(), text.size());
    if (!good || size != bytes.size()) {
        ::sodium_memzero(bytes.data(), bytes.size());
        refuse("the key file {} does not hold 64 hex digits; {}", path, kHowTo);
    }
    KeyPointer key(new Key(bytes));
    ::sodium_memzero(bytes.data(), bytes.size());
    return key;
}

Key::Key(const std::array<uint8_t, 32>& bytes) {
    void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) fail_errno("no memory for a key");
    bytes_ = static_cast<unsigned char*>(page);
    ::mlock(page, kPage);  // a limit on locked memory is no reason not to run
    ::madvise(page, kPage, MADV_DONTDUMP);
    ::madvise(page, kPage, MADV_WIPEONFORK);
    std::memcpy(bytes_, bytes.data(), bytes.size());
    ::mprotect(page, kPage, PROT_READ);
    std::array<uint8_t, 32> all;
    derive("id", nullptr, 0, all);
    std::memcpy(id_.bytes.data(), all.data(), id_.bytes.size());
}

Key::~Key() {
    ::mprotect(bytes_, kPage, PROT_READ | PROT_WRITE);
    ::sodium_memzero(bytes_, kPage);
    ::munmap(bytes_, kPage);
}

void Key::derive(const char* purpose, const void* subject, size_t size,
                 std::array<uint8_t, 32>& out) const noexcept {
    crypto_generichash_state state;
    ::crypto_generichash_init(&state, bytes_, 32, out.size());
    // The purpose's final zero ends it.
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>("fermata "), 8);
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(purpose),
                                std::strlen(purpose) + 1);
    ::crypto_generichash_update(&state, static_cast<const unsigned char*>(subject), size);
    ::crypto_generichash_final(&state, out.data(), out.size());
    ::sodium_memzero(&state, sizeof state);
}

std::string Key::seal_of(const std::string& text) const {
    std::array<uint8_t, 32> seal;
    derive("manifest", text.data(), text.size(), seal);
    return hex_of(seal.data(), seal.size());
}

void check_key(const std::string& subject, const std::optional<Checksum>& wanted, const Key* given) {
    if (wanted && !given)
        refuse("{} is encrypted: name its key with --encrypt-key FILE or FERMATA_ENCRYPT_KEY", subject);
    if (!wanted && given)
        refuse("{} is not encrypted: leave out the key (--encrypt-key, FERMATA_ENCRYPT_KEY)", subject);
    if (wanted && given->id() != *wanted)
        refuse("{} is encrypted with another key than the given one", subject);
}

}  // namespace fermata::image
