! A heat equation in Fortran that saves its own state, and goes on from it on any number of ranks.
!     mpifort fermata.f90 heat.f90 … (docs/api.md);   mpirun -n 4 ./heat [STEPS]
program heat
  use mpi
  use fermata
  implicit none
  integer, parameter :: nx = 64, ny = 96
  real(8), allocatable :: u(:, :), new(:, :)
  type(fermata_state) :: state
  integer :: ierr, rank, size, first, last, step, steps, up, down, code
  real(8) :: mine, total
  character(20) :: word

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  steps = 200
  if (command_argument_count() > 0) then
    call get_command_argument(1, word)
    read (word, *) steps
  end if
  first = ny*rank/size + 1
  last = ny*(rank + 1)/size
  allocate (u(nx, first:last), new(nx, first - 1:last + 1))
  u = 0
  if (first <= ny/2 .and. ny/2 <= last) u(nx/2, ny/2) = 1d6
  down = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  up = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)

  call state%open(MPI_COMM_WORLD, 'heat-state', 'keep=2')
  call state%protect('u', u, shape=[nx, ny], first=[1, first])
  step = 0
  call state%restore(step, code)
  if (code /= FERMATA_OK .and. code /= FERMATA_NOTHING) then
    if (rank == 0) print '(a)', trim(state%message())
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end if
  do while (step < steps)
    new = 0
    new(:, first:last) = u
    call MPI_Sendrecv(u(1, last), nx, MPI_REAL8, up, 0, new(1, first - 1), nx, MPI_REAL8, down, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(u(1, first), nx, MPI_REAL8, down, 1, new(1, last + 1), nx, MPI_REAL8, up, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    u(2:nx - 1, :) = new(2:nx - 1, first:last) + 0.2d0*(new(1:nx - 2, first:last) + new(3:nx, first:last) &
                     + new(2:nx - 1, first - 1:last - 1) + new(2:nx - 1, first + 1:last + 1) - 4*new(2:nx - 1, first:last))
    step = step + 1
    if (mod(step, 50) == 0) call state%save(step)
  end do
  mine = maxval(u)
  call MPI_Reduce(mine, total, 1, MPI_REAL8, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a, i0, a, es23.16)', 'step ', step, ' max ', total
  call state%close()
  call MPI_Finalize(ierr)
end program
