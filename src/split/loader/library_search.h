// Where ld.so would find a library: ld.so(8), with /etc/ld.so.cache read directly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "split/loader/elf_file.h"

namespace fermata::split {

class LibrarySearch {
  public:
    explicit LibrarySearch(std::string library_path) : library_path_(std::move(library_path)) {}
    // Path of `name` as needed by `chain.back()`, which was needed by the one before it, … up to the program;
    // "" = nowhere.
    std::string find(const std::string& name, const std::vector<const ElfFile*>& chain);

  private:
    std::string in_list(const std::string& name, const std::string& list, const std::string& owner) const;
    const std::map<std::string, std::string>& cache();

    std::string library_path_;
    std::map<std::string, std::string> cache_;
    bool cache_read_ = false;
};

}  // namespace fermata::split
