#one = affine_map<(d0) -> (d0)>

func.func @gather(%x: tensor<8xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%k: i64, %o: f32):
    %p = arith.index_cast %k : i64 to index
    // The row to read is data.
    %v = tensor.extract %x[%p] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
