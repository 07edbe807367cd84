#!/usr/bin/env bash
# gfortran: random_seed saves and sets the generator of the calling thread only. After random_seed(put=…) by the main
# thread the other threads of OpenMP go on with their own streams, wherever those are. And threads get their streams in
# the order of their first random_number: with the same seed two of them may have exchanged theirs.
#
# The guess: random_seed(get=…) is the state of the generator, and putting it back repeats what came after it, in all
# threads, as it does without OpenMP; thread 1 has the stream of thread 1.
#
# Where it matters: Monte Carlo codes that keep "the seed" in their restart file: a restarted run repeats in the main
# thread and nowhere else. Each thread has to get and put its own. An image of the process has all of them.
#
# Seen with gfortran 12.2.0-14+deb12u1 and libgfortran5 of the same (Debian 12, x86-64).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get -qq download libgfortran5=12.2.0-14+deb12u1 libgomp1=12.2.0-14+deb12u1
for package in *.deb; do dpkg -x "$package" root; done
export LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu

cat >draw.f90 <<'F'
program draw
  use omp_lib
  implicit none
  integer :: n
  integer, allocatable :: state(:)
  real(8) :: first(0:1), again(0:1), fresh(0:1)
  call omp_set_dynamic(.false.)
  call omp_set_num_threads(2)
  call random_seed(size=n)
  allocate (state(n))
  state = 7
  call random_seed(put=state)
  call draw_each(fresh)
  call random_seed(get=state)
  call draw_each(first)
  call random_seed(put=state)
  call draw_each(again)
  print '(a,l2)', 'thread 0 repeats:', first(0) == again(0)
  print '(a,l2)', 'thread 1 repeats:', first(1) == again(1)
contains
  subroutine draw_each(numbers)
    real(8), intent(out) :: numbers(0:1)
    integer :: turn
    !$omp parallel private(turn)
    do turn = 0, 1
      if (omp_get_thread_num() == turn) call random_number(numbers(turn))
      !$omp barrier
    end do
    !$omp end parallel
  end subroutine draw_each
end program draw
F
cat >order.f90 <<'F'
program order
  use omp_lib
  implicit none
  integer :: n, turn
  integer, allocatable :: state(:)
  real(8) :: numbers(0:2)
  character(10) :: first
  call get_command_argument(1, first)
  call omp_set_dynamic(.false.)
  call omp_set_num_threads(3)
  call random_seed(size=n)
  allocate (state(n))
  state = 7
  call random_seed(put=state)
  !$omp parallel private(turn)
  do turn = 0, 2
    if (omp_get_thread_num() == merge(turn, 2 - turn, first == '0')) call random_number(numbers(omp_get_thread_num()))
    !$omp barrier
  end do
  !$omp end parallel
  print '(3f7.4)', numbers
end program order
F
gfortran -fopenmp draw.f90 -o draw
gfortran -fopenmp order.f90 -o order
echo "libgfortran5 12.2.0-14+deb12u1, state got and put by the main thread:"
./draw | tee said
one=$(./order 0)
other=$(./order 2)
echo "first numbers of threads 0, 1 and 2, thread 0 first: $one, thread 2 first: $other"
diff -q said - >/dev/null <<'SAID' || { echo "changed: thread 0 did, thread 1 did not"; exit 1; }
thread 0 repeats: T
thread 1 repeats: F
SAID
[[ $one != "$other" ]] || { echo "changed: threads 1 and 2 had exchanged theirs"; exit 1; }
