"""The files of a library that are not generated from its kernels: CMake, pkg-config, licence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.files import read_text
from pdojo.library.manifest import major, soname
from pdojo.library.spec import LibrarySpec


def package_files(spec: LibrarySpec, triples: Sequence[str]) -> Mapping[str, str]:
    """The texts by path relative to the library's folder. Raises UsageError for a licence that cannot be read."""
    name = spec.name
    return {
        f"lib/cmake/{name}/{name}Config.cmake": _config(name, soname(name, spec.version), triples),
        f"lib/cmake/{name}/{name}ConfigVersion.cmake": _config_version(spec),
        **{f"lib/{triple}/pkgconfig/{name}.pc": _pkg_config(spec) for triple in triples},
        "LICENSE": _licence(spec),
    }


def _config(name: str, loaded: str, triples: Sequence[str]) -> str:
    """`find_package(NAME)`: the imported target `NAME::NAME`, for the processor that CMake compiles for."""
    branches: list[str] = []
    for number, triple in enumerate(triples):
        architecture = triple.partition("-")[0]
        same = {"x86_64": "^(x86_64|AMD64|amd64)$", "aarch64": "^(aarch64|arm64)$"}.get(
            architecture, f"^{architecture}$"
        )
        word = "elseif" if number else "if"
        branches.append(f'{word}(CMAKE_SYSTEM_PROCESSOR MATCHES "{same}")\n  set(_{name}_triple "{triple}")')
    chosen = "\n".join(branches)
    return f"""\
get_filename_component(_{name}_root "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
{chosen}
else()
  set({name}_FOUND FALSE)
  set({name}_NOT_FOUND_MESSAGE "{name} has no library for ${{CMAKE_SYSTEM_PROCESSOR}}")
  return()
endif()
if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{_{name}_root}}/lib/${{_{name}_triple}}/{loaded}"
    IMPORTED_SONAME "{loaded}"
    INTERFACE_INCLUDE_DIRECTORIES "${{_{name}_root}}/include")
endif()
unset(_{name}_root)
unset(_{name}_triple)
"""


def _config_version(spec: LibrarySpec) -> str:
    """Versions with the same first number are compatible."""
    return f"""\
set(PACKAGE_VERSION "{spec.version}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION OR NOT PACKAGE_FIND_VERSION_MAJOR STREQUAL "{major(spec.version)}")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def _pkg_config(spec: LibrarySpec) -> str:
    """The file of an architecture, beside its shared library, because pkg-config is not told the architecture."""
    return f"""\
prefix=${{pcfiledir}}/../../..
libdir=${{pcfiledir}}/..
includedir=${{prefix}}/include

Name: {spec.name}
Description: Tuned kernels, made by pdojo
Version: {spec.version}
Libs: -L${{libdir}} -l{spec.name}
Cflags: -I${{includedir}}
"""


def _licence(spec: LibrarySpec) -> str:
    if spec.licence_file is None:
        return f"SPDX-License-Identifier: {spec.licence}\n"
    path = spec.folder / spec.licence_file
    try:
        return read_text(path)
    except OSError as error:
        raise spec.error(f"key 'licence_file': cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise spec.error(f"key 'licence_file': cannot read '{path}': it is no UTF-8 text") from None
