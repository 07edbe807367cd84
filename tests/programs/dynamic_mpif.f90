! Spawned programs with arguments, as Fortran passes them: blank-padded strings, a blank one at the end.
program dynamic_mpif
  implicit none
  include 'mpif.h'
  character(len=200) :: self, word
  character(len=12) :: arguments(3), several(2, 3)
  character(len=200) :: commands(2)
  integer :: ierr, parent, rank, inter, codes(2), numbers(2), infos(2), total, mine, i

  call MPI_INIT(ierr)
  call MPI_COMM_GET_PARENT(parent, ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  if (parent /= MPI_COMM_NULL) then
    ! What the arguments are, as a number: their lengths and first letters.
    mine = command_argument_count()
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      mine = mine * 31 + len_trim(word) * 7 + ichar(word(1:1))
    end do
    mine = mod(mine, 100000)
    call MPI_REDUCE(mine, total, 1, MPI_INTEGER, MPI_SUM, 0, parent, ierr)
    call MPI_COMM_DISCONNECT(parent, ierr)
    call MPI_FINALIZE(ierr)
    stop
  end if

  call get_command_argument(0, self)
  arguments = [character(len=12) :: 'two words', 'x', ' ']
  call MPI_COMM_SPAWN(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, codes, ierr)
  call told('spawn')
  call MPI_COMM_SPAWN(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE, ierr)
  call told('none')
  commands = self
  several(1, :) = [character(len=12) :: 'first', 'a b', ' ']
  several(2, :) = [character(len=12) :: 'second', ' ', ' ']
  numbers = 1
  infos = MPI_INFO_NULL
  call MPI_COMM_SPAWN_MULTIPLE(2, commands, several, numbers, infos, 0, MPI_COMM_WORLD, inter, codes, ierr)
  call told('several')
  call MPI_FINALIZE(ierr)

contains
  subroutine told(what)
    character(len=*), intent(in) :: what
    integer :: root
    root = MPI_PROC_NULL
    if (rank == 0) root = MPI_ROOT
    total = -1
    call MPI_REDUCE(mine, total, 1, MPI_INTEGER, MPI_SUM, root, inter, ierr)
    if (rank == 0) print '(a,a,i0)', what, ': right ', total
    call MPI_COMM_DISCONNECT(inter, ierr)
    ! Open MPI 4.1.4 stands still in some spawns that come while the processes of the last are on their way out.
    call sleep(1)
  end subroutine told
end program dynamic_mpif
