#!/bin/sh
# The browser that the tests of the portal drive: Chromium of the system. Installed where we may;
# elsewhere those tests are skipped, and this says so.
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing Chromium for the tests of the portal…"
  # Another apt-get may be at work: wait for it, and try once more.
  for again in 1 2; do
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        -o DPkg::Lock::Timeout=120 --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0
    [ "$again" = 2 ] || sleep 15
  done
  echo "Chromium could not be installed."
fi
echo "There is no Chromium: the tests of the portal in a browser (tests/portal) are skipped."
