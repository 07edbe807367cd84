#!/usr/bin/env bash
# gfortran's runtime says nothing of a full disk when a buffer is written out by FLUSH, by CLOSE or by a formatted
# WRITE: IOSTAT is 0 for all of them, and without IOSTAT the program ends with exit code 0. Of a formatted file every
# byte may be lost so, whatever its size; of an unformatted one the last 128 KiB and what is smaller (a larger WRITE
# goes past the buffer, and is told).
#
# The guess: with IOSTAT looked at after OPEN, WRITE, FLUSH and CLOSE, a restart file that got no error is there, as
# fflush and fclose would say in C.
#
# Where it matters: restart files of Fortran programs: the older one is removed, or the job ended, because the new one
# was "written". Whoever saves by a Fortran program's own files reads them again, or looks at their size.
#
# Seen with libgfortran5 12.2.0-14+deb12u1 (Debian 12, x86-64); /dev/full stands for the disk.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libgfortran5=12.2.0-14+deb12u1
dpkg -x libgfortran5_*.deb root
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu

cat >full.f90 <<'F'
program full
  implicit none
  integer :: unit, said(4)
  real(8) :: a(1000), large(100000)
  a = 1
  large = 1
  open (newunit=unit, file='/dev/full', form='unformatted', action='write', iostat=said(1))
  write (unit, iostat=said(2)) a
  flush (unit, iostat=said(3))
  close (unit, iostat=said(4))
  call say('unformatted 8000', said)
  open (newunit=unit, file='/dev/full', form='formatted', action='write', iostat=said(1))
  write (unit, *, iostat=said(2)) large
  flush (unit, iostat=said(3))
  close (unit, iostat=said(4))
  call say('formatted 800000', said)
  open (newunit=unit, file='/dev/full', form='unformatted', action='write', iostat=said(1))
  write (unit, iostat=said(2)) large
  flush (unit, iostat=said(3))
  close (unit, iostat=said(4))
  call say('unformatted 800000', said)
  open (newunit=unit, file='/dev/full', form='unformatted', action='write')
  write (unit) a
  close (unit)
contains
  subroutine say(what, codes)
    character(*), intent(in) :: what
    integer, intent(in) :: codes(4)
    print '(a,": open",i0," write",i0," flush",i0," close",i0)', what, codes
  end subroutine say
end program full
F
gfortran full.f90 -o full
echo "libgfortran: 12.2.0-14+deb12u1; IOSTAT (28 would be ENOSPC) of bytes written to a full disk:"
./full >said || { echo "changed: without IOSTAT the exit code is $?"; exit 1; }
cat said
echo "without IOSTAT: exit code 0"
diff said - <<'SAID' || { echo "changed"; exit 1; }
unformatted 8000: open0 write0 flush0 close0
formatted 800000: open0 write0 flush0 close0
unformatted 800000: open0 write28 flush0 close0
SAID
