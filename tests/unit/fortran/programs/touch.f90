subroutine touch(a, x)
  integer :: a(*)
  double precision :: x(*)
end subroutine
