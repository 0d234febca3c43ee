# SPDX-License-Identifier: MIT
# Tests of what surrounds the code: the harness, the package, the headers, the exported symbols, the tools, ./dev.
#
# The ones that need nothing of the build but its compiler or its plain library are left out of sanitizer builds, where they would say the same.
# A program that is not there disables its test visibly ("Not Run (Disabled)").

# weft_script_test(NAME name [LABEL label] [NEEDS program-variable...] COMMAND ...)
function(weft_script_test)
  cmake_parse_arguments(arg "" "NAME;LABEL" "NEEDS;COMMAND" ${ARGN})
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600 SKIP_RETURN_CODE 77)
  foreach(program ${arg_NEEDS})
    if(NOT ${program})
      message(STATUS "${arg_NAME} is disabled: ${program} is missing")
      set_tests_properties(${arg_NAME} PROPERTIES DISABLED TRUE)
    endif()
  endforeach()
endfunction()

foreach(name failing empty)
  add_executable(harness_${name} harness/${name}.c)
  target_link_libraries(harness_${name} PRIVATE weft_harness)
endforeach()
weft_script_test(NAME harness LABEL harness
  COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/harness/harness.sh $<TARGET_FILE:harness_failing> $<TARGET_FILE:harness_empty>
    $<$<BOOL:${WEFT_DEBUG}>:debug>)

if(WEFT_SANITIZE OR WEFT_MODEL)
  return()
endif()

find_program(WEFT_PYTHON python3)
find_program(WEFT_CXX NAMES g++ clang++-19 c++)
set(package ${CMAKE_CURRENT_SOURCE_DIR}/package)

weft_script_test(NAME dev_script LABEL package COMMAND sh ${package}/dev.sh ${PROJECT_SOURCE_DIR}/dev)
weft_script_test(NAME documents LABEL package COMMAND sh ${package}/docs.sh ${PROJECT_SOURCE_DIR})
weft_script_test(NAME public_headers LABEL package
  COMMAND sh ${package}/headers.sh ${PROJECT_SOURCE_DIR}/include ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR}/addons/cares/include)
weft_script_test(NAME fiber_cross LABEL package COMMAND sh ${package}/fiber_cross.sh ${PROJECT_SOURCE_DIR})
weft_script_test(NAME tools LABEL package NEEDS WEFT_PYTHON
  COMMAND ${WEFT_PYTHON} -B -m unittest discover -s ${PROJECT_SOURCE_DIR}/tools -p "*_test.py")
if(WEFT_SHARED)
  weft_script_test(NAME exported_symbols LABEL package NEEDS CMAKE_NM
    COMMAND sh ${package}/symbols.sh ${CMAKE_NM} $<TARGET_FILE:weft_shared> ${PROJECT_SOURCE_DIR}/src/weft.map)
endif()
if(WEFT_SHARED)
  set(core $<TARGET_FILE:weft_shared>)
endif()
weft_script_test(NAME addons LABEL package
  COMMAND sh ${package}/addons.sh ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER} ${CMAKE_GENERATOR} ${core})
weft_script_test(NAME lto LABEL package
  COMMAND sh ${package}/lto.sh ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR} ${CMAKE_C_COMPILER} ${CMAKE_GENERATOR})
if(WEFT_SHARED AND WEFT_INSTALL)
  weft_script_test(NAME install LABEL package NEEDS WEFT_CXX PKG_CONFIG_EXECUTABLE
    COMMAND sh ${package}/install.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${CMAKE_C_COMPILER} ${WEFT_CXX} ${PKG_CONFIG_EXECUTABLE}
    ${CMAKE_GENERATOR})
endif()

set(face ${CMAKE_CURRENT_SOURCE_DIR}/face)
weft_script_test(NAME face_mistakes LABEL face COMMAND sh ${face}/neg/neg.sh ${PROJECT_SOURCE_DIR}/include)
weft_script_test(NAME face_matrix LABEL face COMMAND sh ${face}/matrix.sh ${PROJECT_SOURCE_DIR})
if(NOT WEFT_SANITIZE) # its runtime would be missing
  set(blocks_link "--link=$<TARGET_FILE:weft_static> -pthread -ldl")
endif()
weft_script_test(NAME face_blocks LABEL face NEEDS WEFT_PYTHON COMMAND ${WEFT_PYTHON} -B ${face}/blocks.py ${blocks_link} ${PROJECT_SOURCE_DIR})
