#!/bin/sh
# SPDX-License-Identifier: MIT
# docs.sh ROOT - what the documents name is there: commands of ./dev, tests, files on the map, and what tests each of them.
set -u
cd "$1" || exit 1
failures=0

complain() {
    printf '%s\n' "FAILED: $*"
    failures=$((failures + 1))
}

# ---- ./dev: every command that the help or a page names is one, has its function, and the other way round

commands=$(sed -n 's/^\([a-z |]*\)) "do_$command".*/\1/p' dev | tr -d ' ' | tr '|' '\n')
[ -n "$commands" ] || complain "dev has changed its shape: its commands are not found"
for command in $(sed -n '/^usage: /,/^END/s/^  \([a-z][a-z]*\) .*/\1/p' dev); do
    [ "$command" = help ] || echo "$commands" | grep -qx "$command" || complain "./dev help names '$command', which is not there"
done
for command in $commands; do
    grep -q "^do_$command() {" dev || complain "./dev $command has no function"
    sed -n '/^usage: /,/^END/p' dev | grep -q "^  $command" || complain "./dev help does not name '$command'"
done
for command in $(grep -oh '\./dev [a-z][a-z]*' README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md | cut -d' ' -f2 | sort -u); do
    [ "$command" = help ] || echo "$commands" | grep -qx "$command" || complain "a page names './dev $command', which is not there"
done

# ---- tests: those of weft that the page on Tokio's behaviours names. A row of its tables is | Tokio | asserts | weft |.

# Of the last column only; pieces of it that are code.
named=$(awk -F'|' '/^\|/ { print $(NF - 1) } /^## Beyond/ { rest = 1 } rest' docs/decisions/0004-tokio-behaviours.md | grep -o '`[a-z0-9_]*`' | tr -d '`' | sort -u)
[ -n "$named" ] || complain "no test is named"
for name in $named; do
    case $name in
    weft_* | block_on | budget | next) continue ;; # of the interface, not tests
    esac
    [ -e "tests/feature/$name.c" ] || [ -e "tests/unit/$name.c" ] || grep -qE "^(TEST(_WITH)?|ON_A_FIBER)\($name[,)]" tests/*/*.c || complain "0004 names '$name', which is no test and no file of tests"
done

# A test that is named right behind its file is in it: | `file`: `test`.
pairs=$(awk -F'|' '/^\|/ { print $(NF - 1) }' docs/decisions/0004-tokio-behaviours.md | grep -oE '`[a-z0-9_./]+`: `[a-z0-9_]+`' | tr -d '` ' | sort -u)
[ -n "$pairs" ] || complain "no test is named behind its file"
for pair in $pairs; do
    file=${pair%%:*}
    case $file in tests/*) ;; *) file=tests/feature/$file.c ;; esac
    [ -e "$file" ] || continue
    grep -qE "^(TEST(_WITH)?|ON_A_FIBER)\(${pair#*:}[,)]" "$file" || complain "0004 names '${pair#*:}' of $file, which does not have it"
done

# ---- paths: what a page names in tests is there; of one with a star, some file. `tests/harness/test` stands for its .c and .h.

for path in $(grep -oh '`tests/[A-Za-z0-9_./*]*`' README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md | tr -d '`' | sort -u); do
    # shellcheck disable=SC2086  # a pattern, to be expanded
    set -- $path $path.[ch]
    found=no
    for file; do [ -e "$file" ] && found=yes; done
    [ "$found" = yes ] || complain "a page names $path, which matches no file"
done

# ---- options: the page has a row for each option and each variable, and no row for what is not there

variables=$(grep -oh '"WEFT_[A-Z_]*"' src/sched/options.c | tr -d '"' | sort -u)
[ -n "$variables" ] || complain "src/sched/options.c has changed its shape: its variables are not found"
for variable in $variables; do
    grep -q "^| .* | \`$variable\` |" docs/OPTIONS.md || complain "docs/OPTIONS.md has no row for $variable"
done
for variable in $(grep -o '^| .* | `WEFT_[A-Z_]*` |' docs/OPTIONS.md | grep -o 'WEFT_[A-Z_]*` |$' | tr -d '` |'); do
    echo "$variables" | grep -qx "$variable" || complain "docs/OPTIONS.md names $variable, which nobody reads"
done
options=$(sed -n '/^typedef struct weft_rt_opts {/,/^}/s/^    [a-z_0-9 ]*[ *]\([a-z_]*\);.*/\1/p' include/weft/rt.h)
[ -n "$options" ] || complain "include/weft/rt.h has changed its shape: its options are not found"
for option in $options; do
    grep -q "^| \`$option\` |" docs/OPTIONS.md || complain "docs/OPTIONS.md has no row for the option $option"
done

# ---- the map: every source and every feature test has a word in it

# A folder has a table of its own, under its name in bold.
for folder in src/*/; do
    folder=$(basename "$folder")
    table=$(sed -n "/^\*\*$folder\*\*,/,/^\*\*[^*]*\*\*[,.]/p" docs/ARCHITECTURE.md | sed '1p; /^\*\*/d')
    for file in "src/$folder"/*.c; do
        echo "$table" | grep -q "\`$(basename "$file" .c)\(\.c\|\.h\)\?\`" || complain "docs/ARCHITECTURE.md has no row for $file"
    done
done
for file in tests/feature/*.c tests/model/*.c; do
    stem=$(basename "$file" .c)
    grep -q "\`[a-z_/]*$stem\(\.c\|\.h\)\?\`" docs/ARCHITECTURE.md || complain "docs/ARCHITECTURE.md has no word on $file"
done

# ---- the map: every source has a file in tests/unit, or a place in the rows that say what tests it instead; not both

# Within these rows `folder`: comes first, then `file.c` of it, and what tests it in parentheses.
untested=$(sed -n '/^| | Sources without a file of their own/,/^| `tests\/feature`/p' docs/ARCHITECTURE.md | sed '$d' | grep -o '`[a-z]*`:\|`[a-z_]*\.c`' |
    awk -F'`' '/:$/ { folder = $2; next } { print folder "/" $2 }' | sort)
for file in src/*/*.c; do
    name=${file#src/}
    unit=tests/unit/$(echo "$name" | tr / _)
    said=$(echo "$untested" | grep -cx "$name")
    [ -e "$unit" ] && [ "$said" -ne 0 ] && complain "docs/ARCHITECTURE.md says that $file has no unit test: $unit"
    [ -e "$unit" ] || [ "$said" -eq 1 ] || complain "docs/ARCHITECTURE.md does not say, or twice, what tests $file"
done
for name in $untested; do
    [ -e "src/$name" ] || complain "docs/ARCHITECTURE.md says what tests src/$name, which is not there"
done
for test in $(sed -n '/^| | Sources without a file of their own/,/^| `tests\/feature`/p' docs/ARCHITECTURE.md | sed '$d' | grep -o '([^)]*)' | grep -o '`[a-z_/]*`' | tr -d '`' | sort -u); do
    case $test in
    */*) [ -e "tests/$test.c" ] ;;
    *) [ -e "tests/feature/$test.c" ] ;;
    esac || complain "docs/ARCHITECTURE.md names the test '$test', which is not there"
done

[ "$failures" -eq 0 ]
