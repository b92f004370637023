#!/bin/sh
# HealthCheckProgram=/etc/slurm/gpuhooks/healthcheck.sh in slurm.conf. A site copies this file and edits
# the next three lines if it installed elsewhere.
sbin=/usr/local/sbin
config=/etc/gpuhooks/gpuhooks.toml
log=/var/log/gpuhooks.log

# Slurm only logs the status: the program drains by itself. The wrapper keeps the
# manners of the other two.
# To switch the hook off in a hurry: touch `off` beside the configuration file.

PATH=/usr/sbin:/usr/bin:/sbin:/bin # Slurm sets none
export PATH

out=$("$sbin/gpu-healthcheck" --config "$config" 2>&1 >/dev/null)
status=$?

# slurmd logs the words of a hook only if it failed: a warning, or "would drain",
# would be lost.
if [ -n "$out" ]; then
	printf '%s\n' "$out"
	printf '%s\n' "$out" | sed "s/^/$(date -u +%Y-%m-%dT%H:%M:%SZ) job=${SLURM_JOB_ID:-none} /" >>"$log"
fi
[ "$status" -eq 1 ] && exit 1
exit 0
