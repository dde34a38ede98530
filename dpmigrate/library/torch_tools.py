"""Tools of torch that say nothing about data: devices, compilers, profilers, hooks, pruning
(https://docs.pytorch.org/docs/stable/).
"""

from __future__ import annotations

from dpmigrate.execution import placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.values import NONE, NOTHING, SETTING, Data, Value, const, value
from dpmigrate.library.effects import none, same, uniform
from dpmigrate.library.gradients import clip_norm
from dpmigrate.library.modules import MODEL, part
from dpmigrate.library.sites import Row, Site, examples, methods, prefixed
from dpmigrate.library.torch_process import context

_DOC = "https://docs.pytorch.org/docs/stable/"


def second(site: Site) -> Value:
    """``torch.jit.annotate(T, x)``: the second argument."""
    return site.get(1) or NOTHING


def called_now(site: Site) -> Value:
    """``data_parallel(model, x)``: the model is called."""
    inputs = site.get(1, "inputs") or NOTHING
    listed = site.m.known_elements(inputs)
    given = Arguments(listed if listed is not None else [inputs])
    return site.m.call(site.get(0, "module") or NOTHING, given, site.node, site.frame)


def skipped(site: Site) -> Value:
    """``skip_init(nn.Linear, 4, 2)``: the layer, without its initial weights."""
    given = Arguments(site.arguments.positional[1:], site.arguments.keywords)
    return site.m.call(site.get(0) or NOTHING, given, site.node, site.frame)


def mask_of_blocks(site: Site) -> Value:
    """``create_block_mask(f, None, None, Q, KV)``: one for all samples, not one for each."""
    if (site.get(1, "B") or NOTHING) == NONE:
        return value(Data("tensor", placements.UNIFORM))
    return site.unknown("a mask for each sample")


def setting_of(site: Site) -> Value | None:
    """What a layer was made with; a model of a library may have a layer of this name."""
    made = site.object
    if made is not None and made.extra == MODEL:
        return part(site)
    return SETTING if made is not None and made.kind == "module" else None


def sample_rate(site: Site) -> Value:
    """A number of the device, which is not the same on all ranks."""
    return site.data(placements.PER_RANK, kind="number", keep_axes=False)


def compiled(site: Site) -> Value:
    """``torch.jit.is_scripting()``: Python runs the program itself."""
    return const(False)


ROWS = (
    Row("""
torch.compiler.is_compiling torch.compiler.is_exporting torch.compiler.is_dynamo_compiling
torch.jit.is_scripting torch.jit.is_tracing torch.onnx.is_in_onnx_export torch._dynamo.is_compiling
""", compiled, ("torch.jit.is_scripting()", "torch.compiler.is_compiling()"), _DOC + "jit.html"),
    Row("torch.nn.utils.clip_grads_with_norm_ torch.nn.utils.get_total_norm", clip_norm,
        ("torch.nn.utils.get_total_norm([w.detach()])",), _DOC + "nn.html"),
    Row("""
torch.nn.utils.parametrizations.orthogonal torch.nn.utils.parametrize.register_parametrization
torch.nn.utils.parametrize.remove_parametrizations torch.nn.utils.prune.l1_unstructured
torch.nn.utils.prune.random_unstructured torch.nn.utils.prune.ln_structured
torch.nn.utils.prune.random_structured torch.nn.utils.prune.identity torch.nn.utils.prune.remove
torch.nn.utils.prune.custom_from_mask torch.nn.utils.fuse_conv_bn_eval
torch.nn.utils.fuse_linear_bn_eval torch.jit.freeze
torch.jit.optimize_for_inference torch.jit.trace_module torch.jit.script_if_tracing
torch.jit.ignore torch.jit.export torch.jit.unused torch.jit.interface
torch.compiler.disable torch.compiler.allow_in_graph torch.compiler.compile
torch.compiler.assume_constant_result torch._dynamo.disable torch._dynamo.optimize
""", same, source=_DOC + "nn.html"),
    Row("torch.jit.annotate", second, ("torch.jit.annotate(torch.Tensor, x)",),
        _DOC + "jit.html"),
    Row("torch.nn.parallel.data_parallel", called_now, source=_DOC + "nn.html"),
    Row("torch.nn.utils.skip_init", skipped, examples("""
nn.utils.skip_init(nn.Linear, 4, 2)(x).shape[0]
"""), _DOC),
    Row("""
torch.nn.attention.flex_attention.create_block_mask
torch.nn.attention.flex_attention.create_mask
""", mask_of_blocks, source=_DOC),
    Row("""
torch.backends.cuda.sdp_kernel torch.nn.attention.sdpa_kernel torch.cuda.graph
torch.cuda.CUDAGraph torch.autograd.graph.saved_tensors_hooks torch.autograd.graph.save_on_cpu
torch.autograd.profiler.emit_nvtx torch.autograd.profiler.emit_itt torch.Event torch.Stream
torch.autograd.graph.disable_saved_tensors_hooks torch.nn.utils.parametrize.cached
torch.serialization.safe_globals torch.serialization.skip_data torch.cuda.device_of
torch.cuda.StreamContext torch.cuda.ExternalStream torch.mps.Event torch.cpu.Stream
torch.cuda.default_stream torch.accelerator.current_stream torch.cuda.nvtx.range
torch.autograd.graph.allow_mutation_on_saved_tensors torch.cuda.use_mem_pool torch.cuda.MemPool
torch.autograd.set_multithreading_enabled torch.backends.cudnn.flags
torch.profiler.ExecutionTraceObserver
torch.cuda.amp.common.amp_definitely_not_available torch.autograd.forward_ad.dual_level
""", context, source=_DOC),
    Row(methods("context", """
replay capture_begin capture_end start stop add_metadata_json export_stacks add_metadata
reset wait_event record_event wait toggle_collection_dynamic enable disable
"""), none, source=_DOC),
    Row(methods("context", "key_averages table total_average events query"), uniform, source=_DOC),
    Row("""
torch.amp.is_autocast_available torch.cuda.is_initialized torch.cuda.get_arch_list
torch.cuda.get_gencode_flags torch.cuda.initial_seed torch.cuda.memory_stats
torch.cuda.memory_snapshot torch.cuda.list_gpu_processes torch.cuda.is_tf32_supported
torch.cuda.can_device_access_peer torch.cuda.get_per_process_memory_fraction
torch.cuda.get_sync_debug_mode torch.cuda.graph_pool_handle torch.cuda.current_blas_handle
torch.cuda.is_current_stream_capturing torch.cuda.get_allocator_backend torch.cuda.nccl.version
torch.backends.cuda.is_built torch.backends.cuda.flash_sdp_enabled torch.backends.mkl.is_available
torch.backends.cuda.math_sdp_enabled torch.backends.cuda.mem_efficient_sdp_enabled
torch.backends.cuda.cudnn_sdp_enabled torch.backends.cuda.is_flash_attention_available
torch.backends.cuda.preferred_linalg_library torch.backends.cuda.preferred_blas_library
torch.backends.mkldnn.is_available torch.backends.openmp.is_available
torch.backends.mps.is_macos_or_newer torch.backends.mps.is_macos13_or_newer
torch.backends.mps.get_name torch.hub.get_dir torch.hub.list torch.hub.help
torch.profiler.ProfilerActivity torch.profiler.supported_activities torch.profiler.kineto_available
torch.compiler.list_backends torch.jit.isinstance
torch.mps.current_allocated_memory torch.mps.driver_allocated_memory torch.mps.get_rng_state
torch.mps.device_count torch.mps.recommended_max_memory torch.cpu.is_available
torch.cpu.device_count torch.accelerator.is_available
torch.accelerator.device_count torch.accelerator.current_accelerator
torch.accelerator.max_memory_allocated torch.accelerator.memory_allocated
torch.accelerator.memory_reserved torch.accelerator.max_memory_reserved torch.xpu.is_available
torch.xpu.device_count torch.multiprocessing.get_start_method
torch.multiprocessing.cpu_count torch.multiprocessing.get_sharing_strategy
torch.multiprocessing.get_all_start_methods torch.multiprocessing.current_process
torch.nn.utils.parametrize.is_parametrized torch.nn.utils.prune.is_pruned
torch.nn.parameter.is_lazy torch.overrides.is_tensor_like torch.overrides.has_torch_function
torch.optim.swa_utils.get_ema_avg_fn torch.optim.swa_utils.get_ema_multi_avg_fn
torch.optim.swa_utils.get_swa_avg_fn torch.optim.swa_utils.get_swa_multi_avg_fn
torch.utils.collect_env.get_pretty_env_info torch.utils.checkpoint.noop_context_fn
torch.serialization.get_default_load_endianness torch.cuda.cudart torch.random.get_rng_state
torch.random.initial_seed torch.random.seed torch.backends.cpu.get_cpu_capability
""", uniform, source=_DOC),
    Row(prefixed("torch.cuda.", "utilization temperature power_draw clock_rate memory_usage"),
        sample_rate, source=_DOC + "cuda.html"),
    Row("""
torch.cuda.set_per_process_memory_fraction torch.cuda.set_stream torch.cuda.set_sync_debug_mode
torch.cuda.reset_accumulated_memory_stats torch.cuda.reset_max_memory_cached
torch.cuda.memory.empty_cache torch.cuda.nvtx.range_push torch.cuda.nvtx.range_pop
torch.cuda.nvtx.mark torch.cuda.profiler.start torch.cuda.profiler.stop torch.cuda.cudart
torch.backends.cuda.enable_flash_sdp torch.backends.cuda.enable_math_sdp
torch.backends.cuda.enable_mem_efficient_sdp torch.backends.cuda.enable_cudnn_sdp
torch.hub.set_dir torch.hub.download_url_to_file torch.random.set_rng_state
torch.compiler.reset torch.compiler.cudagraph_mark_step_begin torch.compiler.set_stance
torch._dynamo.reset torch._dynamo.mark_dynamic torch._dynamo.config torch.mps.set_rng_state
torch.mps.synchronize torch.mps.set_per_process_memory_fraction torch.mps.seed
torch.accelerator.empty_cache torch.accelerator.synchronize torch.accelerator.set_device_index
torch.accelerator.set_device_idx torch.accelerator.reset_peak_memory_stats
torch.accelerator.set_stream torch.xpu.empty_cache torch.xpu.set_device torch.xpu.synchronize
torch.cpu.set_device torch.cpu.synchronize torch.serialization.add_safe_globals
torch.serialization.clear_safe_globals torch.serialization.register_package
torch.multiprocessing.freeze_support torch.multiprocessing.set_executable
torch.jit.enable_onednn_fusion torch.jit.set_fusion_strategy
torch.nn.utils.prune.global_unstructured
torch.utils.checkpoint.set_checkpoint_early_stop
torch.utils.checkpoint.set_checkpoint_debug_enabled torch.autograd.graph.increment_version
torch.autograd.graph.register_multi_grad_hook .register_post_accumulate_grad_hook
torch.utils.swap_tensors torch.backends.cudnn.set_flags
""", none, source=_DOC),
    Row(methods("generator_of_numbers", "get_state initial_seed device get_offset"), uniform,
        source=_DOC),
    Row(methods("generator_of_numbers", "set_state set_offset"), none, source=_DOC),
    Row(methods("optimizer", """
register_step_post_hook register_step_pre_hook register_state_dict_pre_hook
register_state_dict_post_hook register_load_state_dict_pre_hook
register_load_state_dict_post_hook profile_hook_step
"""), uniform, source=_DOC + "optim.html"),
    Row(methods("scaler", "get_growth_factor get_backoff_factor get_growth_interval"), uniform,
        source=_DOC + "amp.html"),
    Row(methods("scaler", "set_growth_factor set_backoff_factor set_growth_interval"), none,
        source=_DOC + "amp.html"),
)  # fmt: skip
ATTRIBUTES = (
    Row(methods("scheduler", """
optimizer patience factor cooldown threshold min_lrs mode eps num_bad_epochs cooldown_counter
step_size gamma in_cooldown T_max T_0 T_i T_cur eta_min total_steps max_lrs
"""), uniform, source=_DOC + "optim.html"),
    Row(methods("loader", """
collate_fn generator worker_init_fn prefetch_factor persistent_workers
timeout multiprocessing_context
"""), uniform, source=_DOC + "data.html"),
    Row(methods("sampler", """
num_samples replacement weights batch_size drop_last data_source generator epoch seed
"""), uniform, source=_DOC + "data.html"),
    Row(methods("module", """
batch_first bidirectional dropout groups dilation output_padding padding_mode padding_idx
max_norm norm_type scale_grad_by_freq sparse num_heads head_dim embed_dim kdim vdim inplace p
proj_size mode affine track_running_stats ceil_mode return_indices transposed d_model nhead
normalized_shape elementwise_affine num_groups num_parameters scale_factor size upscale_factor
"""), setting_of, source=_DOC + "nn.html"),
)  # fmt: skip
