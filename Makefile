# Short names for the tools; each works from a clean clone. Meson does the building.
#
#   make run                   install, build, show            make check               everything that must hold
#   make quick                 most of it, in 5 minutes        make again N=10          the tests so many times
#   make bench                 all benches                     make bench-log           one of them
#       JSON=DIR                   and keep the answers there      OPTIONS='--quick'        and pass options
#   make performance           all benches, and from their answers docs/PERFORMANCE.md
#       NOTE='It was busy.'        and say so there                OPTIONS='--quick'        in a few minutes
#   make fuzz                  look for breaking inputs,       FUZZ_SECONDS=60          so long each
#   make install               the library, its headers, pawl.pc and the program
#       DESTDIR=ROOT               below this folder               PREFIX=/usr              instead of /usr/local
#   make soak                  the suites that take long       make format, make lint   as they say

.PHONY: run check quick again install bench performance fuzz soak sabotage format lint clean

run:
	./run

check:
	./check

quick:
	./check quick

N = 10

again:
	tools/install build test
	tools/again $(OPTIONS) $(N)

install:
	tools/install build
	tools/configure release
	meson configure -Dprefix=$(abspath $(or $(PREFIX),/usr/local)) build/release
	tools/build release pawl libpawl libpawl.a
	meson install -C build/release --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

bench:
	tools/install build test
	tools/bench $(if $(JSON),--json $(JSON)) $(OPTIONS)

bench-%:
	tools/install build test
	tools/bench $* $(if $(JSON),--json $(JSON)) $(OPTIONS)

performance: bench
	tools/performance $(if $(NOTE),--note '$(NOTE)') $(JSON)

fuzz:
	tools/install build test
	tools/fuzz

sabotage:
	tools/install build test
	tools/sabotage

soak:
	tools/install build test
	tools/build gcc
	tools/run-tests gcc --suite soak --timeout-multiplier 0

format:
	tools/install lint
	tools/format

lint:
	tools/install build test lint
	tools/lint

clean:
	rm -rf build
