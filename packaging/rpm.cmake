# The RPM package. As that of Debian it demands sonames that are the same on all releases, and no MPI library: distributions call
# them differently, and `fermata doctor` says what is there.
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_GROUP "Applications/Engineering")
set(CPACK_RPM_PACKAGE_AUTOREQPROV OFF)
set(CPACK_RPM_PACKAGE_PROVIDES "libfermata.so.1()(64bit)")
set(needed "")
foreach(library sodium.so.23 xxhash.so.0 lz4.so.1 zstd.so.1 isal.so.2 stdc++.so.6 gcc_s.so.1)
    list(APPEND needed "lib${library}()(64bit)")
endforeach()
list(APPEND needed "glibc >= 2.36")
list(JOIN needed ", " CPACK_RPM_PACKAGE_REQUIRES)
# Folders of others.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/include /usr/lib/python3 /usr/lib/python3/dist-packages /usr/share/man
    /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh /usr/share/zsh/site-functions
    /usr/share/fish /usr/share/fish/vendor_completions.d /usr/libexec /usr/share/modulefiles)
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __strip /bin/true\n%define _build_id_links none")
