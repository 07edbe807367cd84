# Weighs tests, so that a machine of two cores is busy and not overloaded (./check has five to give away): PROCESSORS, by what
# was measured of them, the seconds of a processor that a test takes in a second of its time (results/set-up.md).
#
# - 2, real jobs: their ranks ask for messages without a rest, 0.5 to 1.3. Two of them at a time, as two that poll beside a
#   third one get in each other's way: on four processes to a core such a test takes ten times as long.
# - 1, those that mostly wait (for a file, for a checkpoint, for a death to be seen), below 0.45; and unit tests.
# - RUN_SERIAL, programs that compute, and tests of how long something may take: they say so where they are added.
#
# A test that fails only beside others goes back to 2. The heavy ones begin first (COST), since a light one fits in everywhere.
set(FERMATA_LIGHT_TESTS "^system\\.(attack\\.files|bad|dynamic|files|given_up|levels|mpmd|one_directory|shared_state|starters|terminal|words)\\.")

# For the tests that the folder has so far.
function(fermata_weigh_tests)
    get_property(all DIRECTORY PROPERTY TESTS)
    foreach(test ${all})
        if(test MATCHES "${FERMATA_LIGHT_TESTS}" OR NOT test MATCHES "^(system|upgrade)\\.")
            continue()
        endif()
        set_tests_properties(${test} PROPERTIES PROCESSORS 2)
        get_test_property(${test} COST cost)
        if(NOT cost)
            set_tests_properties(${test} PROPERTIES COST 10)
        endif()
    endforeach()
endfunction()
