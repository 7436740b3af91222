"""A spread of ONNX's own backend tests, interpreted and compiled."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="needs onnx")

from qa.conformance import results, table

NAMES = """
abs add_bcast and_bcast3v1d argmax_keepdims_random averagepool_2d_pads batchnorm_example bitshift_left_uint8
cast_FLOAT_to_FLOAT16 ceil clip_splitbounds concat_2d_axis_negative_1 basic_conv_with_padding convtranspose
cumsum_2d_axis_1 depthtospace_example div_uint8 einsum_batch_matmul equal_bcast erf expand_dim_changed flatten_axis2
flexattention gather_1 gelu_tanh_2 gemm_all_attributes globalaveragepool gru_defaults hardsigmoid if identity
instancenorm_example isnan layer_normalization_4d_axis2 leakyrelu loop11 logsoftmax_axis_1 lstm_defaults matmul_4d
max_float32 maxpool_2d_strides mean_one_input mod_mixed_sign_int32 neg not_3d onehot_with_axis pow_types_float32_int64
prelu_broadcast quantizelinear range_float_type_positive_delta reduce_sum_square_do_not_keepdims_random
reshape_allowzero_reordered resize_downsample_scales_cubic scan9_sum scatter_elements_with_axis selu
sequence_insert_at_back shape slice_negative_axes softmax_large_number split_variable_parts_1d_opset18 sqrt squeeze
tile transpose_all_permutations_3 unsqueeze_unsorted_axes triu where_example xor3d
""".split()


@pytest.mark.parametrize("engine", ["interpreter", "none"])
def test_a_spread_of_the_suite(engine: str) -> None:
    wanted = {f"test_{name}" for name in NAMES}
    found = list(results([], engine, wanted))  # pyright: ignore[reportArgumentType]
    assert {each.name for each in found} == wanted
    assert [each for each in found if each.outcome == "failed"] == [], table(found)
    assert len([each for each in found if each.outcome == "skipped"]) <= 2, table(found)
