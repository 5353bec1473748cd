#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# info_check.sh HVD_INFO LIBHVD MODULE FAKES OLD_FAKES PROFILER MODULE_WITH_KERNELS KERNELS HVDRUN: hvd-info --check prints
# the right lines with stand-ins for CUDA and NCCL, without NCCL, with libraries that are too old, and without the
# GPU module. KERNELS is the text that --check prints for the kernels in MODULE. MODULE_WITH_KERNELS has kernels for
# the stand-in's GPU. Without HVDRUN the tests with two ranks are left out.
info=$1 fakes=$4 old=$5 profiler=$6 with_kernels=$7 kernels=$8 hvdrun=$9
export HVD_LIBRARY="$2" HVD_GPU_MODULE="$3"
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
broken=$work/broken
mkdir "$broken"
: >"$broken/libcuda.so.1"

printf 'shm 1e9 1e8\n' >"$work/shm.conf"
printf 'shm 1 2 3\n' >"$work/bad.conf"

options=''

# says PROMISE STATUS PATTERN [VARIABLE=VALUE...]: hvd-info --check exits with STATUS, and prints a line like PATTERN.
says()
{
    promise=$1 status=$2 pattern=$3
    shift 3
    # shellcheck disable=SC2086 # options
    env "$@" "$info" --check $options >"$work/out" 2>&1
    [ $? -eq "$status" ] && grep -q "$pattern" "$work/out"
    report $? "$promise"
}

says single_process_can_start 0 "^start: by no launcher, as the only rank$" LD_LIBRARY_PATH="$fakes"
no_gpu=HWLOC_COMPONENTS=-pci # hides the GPUs of this machine
says lone_process_has_a_verdict 0 "^verdict: good, 1 rank starts$" LD_LIBRARY_PATH="$fakes"
nobody=127.0.0.1:1:0000000000000000000000000000000000000000000000000000000000000000 # the address of a service that does not run
says ranks_that_do_not_find_each_other_name_their_node 1 "^$(hostname): start: by hvd's rendezvous service$" \
    LD_LIBRARY_PATH="$fakes" HVD_RENDEZVOUS="$nobody" HOROVOD_RANK=0 HOROVOD_SIZE=2 HVD_START_TIMEOUT=1
says the_cause_of_that_is_printed 1 "^hvd-info: hvd.init() would fail here: .*127.0.0.1" \
    LD_LIBRARY_PATH="$fakes" HVD_RENDEZVOUS="$nobody" HOROVOD_RANK=0 HOROVOD_SIZE=2 HVD_START_TIMEOUT=1
says reason_of_a_failing_start_is_printed 1 "^$(hostname): start: impossible: OMPI_COMM_WORLD_SIZE is 4 but there is no PMIx" \
    LD_LIBRARY_PATH="$fakes" OMPI_COMM_WORLD_SIZE=4
says and_is_the_finding_about_this_node 1 "^$(hostname): red: start: OMPI_COMM_WORLD_SIZE is 4 but there is no PMIx" \
    LD_LIBRARY_PATH="$fakes" OMPI_COMM_WORLD_SIZE=4
says a_failing_start_has_a_verdict 1 "^verdict: bad$" LD_LIBRARY_PATH="$fakes" OMPI_COMM_WORLD_SIZE=4
says ranks_that_do_not_find_each_other_have_a_verdict 1 "^verdict: bad$" \
    LD_LIBRARY_PATH="$fakes" HVD_RENDEZVOUS="$nobody" HOROVOD_RANK=0 HOROVOD_SIZE=2 HVD_START_TIMEOUT=1
unchanged=RANK:360caa42,MASTER_PORT:b11c431b,PYTHONPATH:317a0142 # of 3, 29500 and /opt/hvd
says variables_that_stay_are_reported 0 "^variables that hvd's plugin has set: unchanged" LD_LIBRARY_PATH="$fakes" \
    HVD_EXPORTED=$unchanged RANK=3 MASTER_PORT=29500 PYTHONPATH=/image:/opt/hvd
says changed_variables_are_named 0 "^variables that hvd's plugin has set and that were changed: RANK,PYTHONPATH$" \
    LD_LIBRARY_PATH="$fakes" HVD_EXPORTED=$unchanged RANK=4 MASTER_PORT=29500 PYTHONPATH=/image
says removed_variables_are_named 0 "^variables that hvd's plugin has set and that were removed: MASTER_PORT$" \
    LD_LIBRARY_PATH="$fakes" HVD_EXPORTED=$unchanged RANK=3 PYTHONPATH=/opt/hvd
says missing_gpu_is_no_fault_if_none_was_asked_for 0 "^GPU tensors: cannot be used, but no GPU is here and none was asked for" \
    LD_LIBRARY_PATH="$fakes" "$no_gpu" FAKE_GPU_COUNT=0
says missing_gpu_is_a_fault_if_slurm_gave_some 1 "^hvd-info: GPU tensors cannot be used on $(hostname)$" \
    LD_LIBRARY_PATH="$fakes" FAKE_GPU_COUNT=0 SLURM_JOB_ID=1 SLURM_JOB_GPUS=0
says missing_gpu_is_a_fault_if_the_user_chose_one 1 "^GPU tensors: cannot be used$" \
    LD_LIBRARY_PATH="$fakes" FAKE_GPU_COUNT=0 CUDA_VISIBLE_DEVICES=GPU-1
says hidden_gpus_are_not_asked_for 0 "^verdict: good" LD_LIBRARY_PATH="$fakes" "$no_gpu" FAKE_GPU_COUNT=0 CUDA_VISIBLE_DEVICES=NoDevFiles
says usable_gpu_is_reported 0 "^GPU tensors: can be used$" LD_LIBRARY_PATH="$fakes"
says driver_and_its_version_are_printed 0 "^CUDA driver: 12040, .*libcuda.so.1" LD_LIBRARY_PATH="$fakes"
says nccl_and_its_version_are_printed 0 "^NCCL: 21803, .*libnccl.so.2" LD_LIBRARY_PATH="$fakes"
mkdir "$work/bin"
printf '#!/bin/sh\necho slurm 99.05.1\n' >"$work/bin/scontrol"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/python"
printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >"$work/bin/python3"
chmod a+x "$work"/bin/*
says slurm_is_named_in_a_job 0 "^Slurm: 99.05.1$" PATH="$work/bin:$PATH" SLURM_JOB_ID=1
says the_second_python_is_asked 0 "^Python: 3[.0-9]*\( with .*\)*$" PATH="$work/bin:$PATH"
says devices_are_counted 0 "^GPUs that this process sees: 3" LD_LIBRARY_PATH="$fakes" FAKE_GPU_COUNT=3
says missing_device_is_reported 0 "^GPUs: unusable: cuInit failed" LD_LIBRARY_PATH="$fakes" "$no_gpu" FAKE_GPU_COUNT=0
says old_nccl_is_unusable 0 "^NCCL: unusable, $old/.* returned version 2604 .*, but 2.7 or later is needed: .* HVD_NCCL_LIBRARY" \
    LD_LIBRARY_PATH="$fakes" HVD_NCCL_LIBRARY="$old/libnccl.so.2"
says old_driver_is_unusable 1 "^CUDA driver: unusable, $old/.* returned version 10020 .*, but 11.0 or later is needed: install" \
    LD_LIBRARY_PATH="$old" CUDA_VISIBLE_DEVICES=0
says chosen_nccl_is_the_only_one_tried 0 "^NCCL: unusable, not found: no NCCL here (/nonexistent.so" LD_LIBRARY_PATH="$fakes" \
    HVD_NCCL_LIBRARY=/nonexistent.so
says infiniband_cards_are_listed 0 "^InfiniBand: " LD_LIBRARY_PATH="$fakes"
says transport_is_named 0 '^between nodes: TCP, UCX is not used: HVD_NET=tcp' LD_LIBRARY_PATH="$fakes" HVD_NET=tcp
says settings_of_ucx_are_printed_in_order 0 '^UCX settings: UCX_LOG_LEVEL=warn UCX_TLS=tcp$' LD_LIBRARY_PATH="$fakes" \
    UCX_TLS=tcp UCX_LOG_LEVEL=warn
says the_card_of_a_rank_is_no_setting_of_ucx 0 '^UCX settings: UCX_TLS=tcp$' LD_LIBRARY_PATH="$fakes" \
    UCX_TLS=tcp UCX_NET_DEVICES=lo
says ucx_and_its_version_are_printed 0 "^UCX: \([0-9.]* with\(out\)\? CUDA support: \|unusable: \)" LD_LIBRARY_PATH="$fakes"
says missing_nvtx_profiler_is_reported 0 "^NVTX ranges: none, no profiler has set NVTX_INJECTION64_PATH" LD_LIBRARY_PATH="$fakes"
says nvtx_profiler_is_named 0 "^NVTX ranges: to $profiler" LD_LIBRARY_PATH="$fakes" NVTX_INJECTION64_PATH="$profiler" \
    FAKE_NVTX_LOG=/dev/null
says nvtx_ranges_that_are_off_are_reported 0 "^NVTX ranges: off, HOROVOD_DISABLE_NVTX_RANGES=1" LD_LIBRARY_PATH="$fakes" \
    HOROVOD_DISABLE_NVTX_RANGES=1
says nvtx_profiler_that_cannot_be_loaded_is_named 0 "^NVTX ranges: none, /nonexistent.so" LD_LIBRARY_PATH="$fakes" \
    NVTX_INJECTION64_PATH=/nonexistent.so
says broken_driver_is_reported 1 "^CUDA driver: unusable, not found: no CUDA driver here (.*file too short)" \
    LD_LIBRARY_PATH="$broken" CUDA_VISIBLE_DEVICES=0
says kernels_are_listed 0 "^kernels: for the stand-in" LD_LIBRARY_PATH="$fakes" HVD_GPU_MODULE="$with_kernels"
says kernels_of_the_build_are_listed 0 "^kernels: $kernels" LD_LIBRARY_PATH="$fakes"
says missing_module_is_reported 1 "^GPU module: unusable: GPU tensors need hvd_gpu.so" HVD_GPU_MODULE=/nonexistent.so CUDA_VISIBLE_DEVICES=0
says missing_libhvd_is_reported 1 "^hvd-info: cannot load libhvd.so" HVD_LIBRARY=/nonexistent.so
options='--json'
says json_has_the_fields_of_a_health_check 0 '^{"fail_count": 0, "failed_checks": \[\], .*"check": "shm", "status": "green"' \
    LD_LIBRARY_PATH="$fakes" "$no_gpu"
says a_failed_start_is_a_failed_check 1 '^{"fail_count": 1, "failed_checks": \["start"\]' \
    LD_LIBRARY_PATH="$fakes" OMPI_COMM_WORLD_SIZE=4
options="--node --thresholds $work/shm.conf"
says node_alone_does_not_start 1 "^$(hostname): red: shm: " LD_LIBRARY_PATH="$fakes" "$no_gpu" OMPI_COMM_WORLD_SIZE=4
options="--thresholds $work/bad.conf"
says wrong_threshold_is_named 2 "bad.conf line 1: expected NAME YELLOW RED" LD_LIBRARY_PATH="$fakes"

# The limits of this file are for GPUs of one model; no number of the stand-in is that large.
printf 'gpu_pair_NVIDIA_A100-SXM 1e9 1e8\n' >"$work/gpus.conf"
options="--seconds 1 --thresholds $work/gpus.conf"

# two_say PROMISE STATUS PATTERN [VARIABLE=VALUE...]: the same on two ranks, each with a GPU.
two_say()
{
    promise=$1 status=$2 pattern=$3
    shift 3
    # shellcheck disable=SC2086 # options
    env LD_LIBRARY_PATH="$fakes" HVD_GPU_MODULE="$with_kernels" "$@" "$hvdrun" -np 2 "$info" --check $options >"$work/out" 2>&1
    [ $? -eq "$status" ] && grep -q "$pattern" "$work/out"
    report $? "$promise"
}

if [ -n "$hvdrun" ]; then
    two_say gpus_of_a_node_exchange_messages 0 "^$(hostname): green: gpu_pair: [0-9.e-]* GB/s"
    two_say gpus_reduce 0 "^$(hostname): green: gpu_allreduce: [0-9.e-]* GB/s"
    two_say pinned_memory_is_copied 0 "^$(hostname): green: gpu_copy: [0-9.e-]* GB/s"
    two_say nvlink_that_is_not_used_is_a_fault 1 \
        "^$(hostname): red: gpu_pair: .* the limit is 100000000: check NVLink" FAKE_GPU_MODEL='NVIDIA A100-SXM4-40GB'
    two_say facts_are_told_if_nccl_fails 1 "^$(hostname): GPU tensors: can be used" FAKE_NCCL_FAILS=ncclAllReduce
    two_say a_module_that_is_missing_ends_no_check 0 "^$(hostname): green: allreduce: " HVD_GPU_MODULE=/nonexistent.so "$no_gpu"
    two_say ranks_that_share_a_gpu_have_no_link 0 "^$(hostname): green: gpu_allreduce: " FAKE_GPU_SHARED=1 \
        FAKE_GPU_MODEL='NVIDIA A100-SXM4-40GB'
    ! grep -q 'gpu_pair: ' "$work/out"
    report $? no_rate_between_them_is_printed
    two_say a_rank_without_a_gpu_ends_no_check 0 "^$(hostname): green: allreduce: " FAKE_GPU_COUNT=0 "$no_gpu"
fi
tap_done
