! The checks with the interfaces of `use mpi`.
program checks_module
  use mpi
  implicit none
  include 'checks.inc'
end program
include 'callbacks.inc'
