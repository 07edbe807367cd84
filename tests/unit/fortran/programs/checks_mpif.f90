! The checks with implicit interfaces.
program checks_mpif
  implicit none
  include 'mpif.h'
  include 'checks.inc'
end program
include 'callbacks.inc'
