# SPDX-License-Identifier: MIT
# What `cmake --install` lays down: headers, both libraries, a CMake package and a pkg-config file, all found relative to where they lie.
#
# The libraries are exported in one file each, so that a distribution may put libweft.a and libweft.so into different packages.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(DIRECTORY include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(TARGETS weft_static EXPORT weftStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT static)
install(EXPORT weftStatic NAMESPACE weft:: DESTINATION ${package_dir} COMPONENT static)
if(WEFT_SHARED)
  install(TARGETS weft_shared EXPORT weftShared
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
  install(EXPORT weftShared NAMESPACE weft:: DESTINATION ${package_dir} COMPONENT development)
endif()

# Optional components (addons/), one package each.
foreach(addon ${WEFT_ADDONS})
  install(TARGETS weft_${addon} EXPORT weftAddon_${addon} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${addon})
  install(EXPORT weftAddon_${addon} NAMESPACE weft:: DESTINATION ${package_dir} COMPONENT ${addon})
  install(DIRECTORY addons/${addon}/include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${addon})
endforeach()

configure_package_config_file(cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break what the one before it promised.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)

# The prefix is found from the .pc file itself, unless libdir or includedir were given as absolute paths outside of it.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
  set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH up /prefix/${pc_dir} /prefix)
  string(REGEX REPLACE "/$" "" up ${up})
  set(pc_prefix "\${pcfiledir}/${up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${pc_dir} COMPONENT development)
foreach(addon ${WEFT_ADDONS})
  set(pc_requires "${WEFT_${addon}_MODULE}")
  configure_file(cmake/weft-addon.pc.in ${PROJECT_BINARY_DIR}/weft-${addon}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/weft-${addon}.pc DESTINATION ${pc_dir} COMPONENT ${addon})
endforeach()
