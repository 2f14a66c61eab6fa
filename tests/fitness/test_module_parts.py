"""Parts of the module path that need no process of their own."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from torch import nn

from cuda_sandbox.protocol import Op, Reply, Request
from fitness import languages
from fitness.module import libraries
from fitness.module.runner.orders import Orders, Refused, Spec, filled
from fitness.module.runner.outputs import Outputs, wipe
from fitness.module.runner.watch import Originals, program_of
from fitness.module.runner.weights import PARAMETER, place

CPU = torch.device("cpu")


def spec(name, *shape, role=PARAMETER):
    return Spec(name, role, "float32", shape)


def test_weights_are_matched_by_name_before_they_are_matched_by_order():
    model = nn.Linear(3, 3)
    model.extra = nn.Parameter(torch.zeros(3))

    found = place(model, [spec("other", 3), spec("weight", 3, 3), spec("bias", 3)])

    assert [one.name for one in found.places] == ["extra", "weight", "bias"]
    assert found.how == "by name and by order of shapes"


def test_weights_may_be_buffers_or_plain_attributes_of_the_same_shape():
    model = nn.Module()
    model.register_buffer("kept", torch.zeros(2, 5))

    assert place(model, [spec("weight", 2, 5)]).places[0].name == "kept"


def test_inputs_are_no_weights():
    model = nn.Linear(3, 1, bias=False)

    found = place(model, [spec("weight", 1, 3, role="input"), spec("w", 1, 3)])

    assert found.places[0] is None
    assert found.places[1].name == "weight"


def test_a_missing_buffer_is_no_fault_and_own_tensors_are_listed():
    model = nn.Linear(2, 2, bias=False)
    model.table = torch.arange(4)

    found = place(model, [spec("weight", 2, 2), spec("running", 7, role="buffer")])

    assert found.places[1] is None
    assert [one.name for one in found.own] == ["table"]


def test_a_tensor_of_a_subclass_is_refused_by_its_name():
    class Odd(torch.Tensor):
        pass

    outputs = Outputs([Spec("out", "output", "float32", (2,))], CPU)

    with pytest.raises(Refused, match="Odd"):
        outputs.take(torch.zeros(2).as_subclass(Odd), [torch.zeros(2)])
    with pytest.raises(Refused, match="Parameter"):
        outputs.take(nn.Parameter(torch.zeros(2)), [torch.zeros(2)])


def test_strided_and_nested_outputs_are_copied_in_order():
    outputs = Outputs([Spec(f"out{i}", "output", "float32", (2, 3)) for i in range(2)], CPU)
    targets = [torch.zeros(2, 3), torch.zeros(2, 3)]

    outputs.take([torch.ones(3, 2).t(), (None, torch.full((2, 3), 2.0))], targets)

    assert targets[0].eq(1).all()
    assert targets[1].eq(2).all()


def test_answers_are_wiped_but_not_what_the_model_or_the_judge_holds():
    model = nn.Linear(2, 2)
    given, answer = torch.ones(4), torch.ones(4)

    wipe([answer[1:], given[:2], model.weight], [given], model)

    assert answer.isnan().all(), "the whole memory behind a view"
    assert given.eq(1).all()
    assert model.weight.isfinite().all()


def test_what_is_put_in_the_place_of_a_timer_or_a_comparison_is_named(monkeypatch):
    originals = Originals.now()
    originals.require()

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "copy_", lambda *_: None)
        with pytest.raises(Refused, match=r"replaces torch\.Tensor\.copy_"):
            originals.require()
    with monkeypatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: 0.0)
        with pytest.raises(Refused, match=r"replaces time\.perf_counter"):
            originals.require()


@pytest.mark.parametrize(
    ("event", "args", "name"),
    [
        ("subprocess.Popen", ("/usr/bin/curl", ["curl", "-s"], None, None), "curl"),
        ("subprocess.Popen", (b"x", [b"/bin/sh", b"-c"], None, None), "sh"),
        ("os.system", (b"rm -rf /",), "rm"),
        ("os.fork", (), "a copy of itself"),
    ],
)
def test_programs_are_named(event, args, name):
    assert program_of(event, args) == name


def test_libraries_are_told_from_own_kernels():
    theirs = [
        "ampere_sgemm_128x64_nn",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
        "void at::native::(anonymous namespace)::softmax_warp_forward<float, 11>(...)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>()",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true>(...)",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(...)",
        "void pytorch_flash::flash_fwd_kernel<...>(...)",
    ]
    own = [
        "relu_kernel(float const*, float*, long)",
        "softmax_kernel",
        "void tiled_gemm<64, 64>(float const*, float const*, float*)",
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
    ]

    assert libraries.foreign([*theirs, *own]) == tuple(theirs)


def test_operators_that_only_move_memory_do_not_compute():
    seen = [
        "aten::empty_like",
        "aten::t",
        "aten::copy_",
        "aten::mm",
        "mine::kernel",
        "aten::add.Tensor",
    ]

    assert libraries.computing(seen) == ("aten::mm", "aten::add.Tensor")


def test_frames_survive_the_way_there_and_back():
    request = Request(Op.RUN, index=3, calls=7, handle=bytes(range(64)))

    assert Request.unpack(request.pack(99)) == (request, 99)
    assert Reply.unpack(Reply(6, 5, a=4, count=3, payload=b"abc").pack()).payload[:3] == b"abc"


def test_orders_hold_arguments_of_the_constructor_and_of_forward(tmp_path):
    told = {
        "leaves": [["x", "input", "float32", [2], []]],
        "outputs": [["out", "output", "float32", [2], ["lazy"]]],
        "forward": [{"list": [{"leaf": 0}, {"tuple": [{"value": 3}]}]}, {"value": None}],
    }
    (tmp_path / "orders.json").write_text(json.dumps(told))
    (tmp_path / "constructor.pickle").write_bytes(pickle.dumps(([1, (2, 3)], {"eps": 0.1})))

    orders = Orders.read(tmp_path)

    assert orders.outputs[0].owes == ("lazy",)
    assert (orders.args, orders.kwargs) == ([1, (2, 3)], {"eps": 0.1})
    assert [filled(one, ["X"]) for one in orders.forward] == [["X", (3,)], None]


def test_languages_are_found_by_name_and_by_the_ending_of_a_file():
    found = languages.of_suffix()

    assert {suffix: one.name for suffix, one in found.items()} == {
        ".cpp": "cpp",
        ".cu": "cuda",
        ".py": "module",
    }
    assert found[".py"].devices == ("cuda", "cpu")
    with pytest.raises(ValueError, match="choose from: cpp, cuda, module"):
        languages.find("fortran")
