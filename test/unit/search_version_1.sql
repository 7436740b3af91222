-- A search database of version 1: a run of six evaluations (test/search_games.py).
PRAGMA application_id = 1885630314;
PRAGMA user_version = 1;
CREATE TABLE machines (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE programs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL
);
CREATE TABLE problems (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    plain INTEGER NOT NULL REFERENCES programs, machine INTEGER NOT NULL REFERENCES machines,
    kernel TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL, label TEXT NOT NULL
);
CREATE TABLE traces (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    problem INTEGER NOT NULL REFERENCES problems, program INTEGER NOT NULL REFERENCES programs, text TEXT NOT NULL
);
CREATE INDEX traces_of_program ON traces (program);
CREATE TABLE settings (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    machine INTEGER NOT NULL REFERENCES machines, evaluator TEXT NOT NULL, unit TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE environments (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, text TEXT NOT NULL
);
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs, settings INTEGER NOT NULL REFERENCES settings,
    cost REAL, failure TEXT NOT NULL, detail TEXT NOT NULL, environment INTEGER REFERENCES environments,
    seconds TEXT NOT NULL, measured TEXT NOT NULL,
    UNIQUE (program, settings), CHECK ((cost IS NULL) = (failure <> ''))
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,
    problem INTEGER NOT NULL REFERENCES problems, settings INTEGER NOT NULL REFERENCES settings,
    root INTEGER NOT NULL REFERENCES traces, strategy TEXT NOT NULL, neighbourhood TEXT NOT NULL,
    seed INTEGER NOT NULL, text TEXT NOT NULL, started TEXT NOT NULL, changed TEXT NOT NULL, state TEXT NOT NULL
);
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs, number INTEGER NOT NULL, program INTEGER NOT NULL REFERENCES programs,
    trace INTEGER NOT NULL REFERENCES traces, parent INTEGER REFERENCES programs,
    cost REAL, failure TEXT NOT NULL, best INTEGER NOT NULL, seconds REAL NOT NULL,
    UNIQUE (run, number), CHECK ((cost IS NULL) = (failure <> ''))
);
CREATE VIEW best AS
SELECT problem, settings, program, trace, cost, measured FROM (
    SELECT t.problem, m.settings, m.program, min(t.id) AS trace, m.cost, m.measured,
        row_number() OVER (PARTITION BY t.problem, m.settings ORDER BY m.cost, m.id) AS place
    FROM measurements m JOIN traces t ON t.program = m.program JOIN problems p ON p.id = t.problem
        JOIN settings s ON s.id = m.settings AND s.machine = p.machine
    WHERE m.failure = ''
    GROUP BY t.problem, m.id
) WHERE place = 1;
INSERT INTO "environments" VALUES(1,'22dbd11423eb819eb6515d2420ee2831223d9cf718a49a774ee02914a07648c1','{"tool":"text"}');
INSERT INTO "evaluations" VALUES(1,1,0,1,1,NULL,7.94614737201482057571e+00,'',1,8.12839003629051148891e-04);
INSERT INTO "evaluations" VALUES(2,1,1,2,2,1,7.91559294681064784526e+00,'',1,1.87231620002421550452e-01);
INSERT INTO "evaluations" VALUES(3,1,2,3,3,1,4.3996737687848508358e+00,'',1,1.87512788004823960363e-01);
INSERT INTO "evaluations" VALUES(4,1,3,4,4,1,7.90932642063126,'',0,1.87773476005531847476e-01);
INSERT INTO "evaluations" VALUES(5,1,4,5,5,3,4.5780277797020971775e+00,'',0,2.00920094001048710197e-01);
INSERT INTO "evaluations" VALUES(6,1,5,6,6,5,7.40985698439180850982e+00,'',0,2.14016226003877818584e-01);
INSERT INTO "evaluations" VALUES(7,1,6,7,7,5,5.34844482108019292354e+00,'',0,2.14293518001795746386e-01);
INSERT INTO "machines" VALUES(1,'288f2391042dd970993279815d444b09c51e85b7d951ff5c1c070ee5396faa94','toy','{"architecture":"","async_copy_bytes":[],"block_threads":0,"cache_bytes":[256],"cache_line":64,"features":[],"fma_latency":4,"fma_pipes":1,"frep_instructions":0,"frep_nesting":0,"frep_trips":0,"gather":true,"intrinsics":[{"features":[],"meaning":"kernel toy_dot(a, b, c) -> (c)\na f32 [2] heap\nb f32 [4, 2] heap\nc f32 [4] heap\n\n4 2 c[{0}] += a[{1}] * b[{0},{1}]\n","name":"toy_dot","numerics":[],"registers":0,"strides":{"b":["*","*"]},"templates":{"llvm":"define void @toy_dot(ptr %a, ptr %b, ptr %c, i64 %b_0, i64 %b_1) alwaysinline {\n  %a.1 = getelementptr float, ptr %a, i64 1\n  %x.0 = load float, ptr %a, align 4\n  %x.1 = load float, ptr %a.1, align 4\n  br label %loop\nloop:\n  %i = phi i64 [ 0, %0 ], [ %next, %loop ]\n  %at = mul i64 %i, %b_0\n  %b.0 = getelementptr float, ptr %b, i64 %at\n  %b.1 = getelementptr float, ptr %b.0, i64 %b_1\n  %c.i = getelementptr float, ptr %c, i64 %i\n  %y.0 = load float, ptr %b.0, align 4\n  %y.1 = load float, ptr %b.1, align 4\n  %p.0 = fmul float %x.0, %y.0\n  %p.1 = fmul float %x.1, %y.1\n  %old = load float, ptr %c.i, align 4\n  %half = fadd float %old, %p.0\n  %new = fadd float %half, %p.1\n  store float %new, ptr %c.i, align 4\n  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, 4\n  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n"}},{"features":[],"meaning":"kernel toy_add(a, b) -> (c)\na f32 [4] heap\nb f32 [4] heap\nc f32 [4] heap\n\n4 c[{0}] = a[{0}] + b[{0}]\n","name":"toy_add","numerics":[],"registers":0,"strides":{},"templates":{"llvm":"define void @toy_add(ptr %a, ptr %b, ptr %c) alwaysinline {\n  %x = load <4 x float>, ptr %a, align 4\n  %y = load <4 x float>, ptr %b, align 4\n  %z = fadd <4 x float> %x, %y\n  store <4 x float> %z, ptr %c, align 4\n  ret void\n}\n"}}],"lanes":{"bf16":[2,4],"f16":[2,4],"f32":[2,4],"f64":[2,4],"i1":[2,4],"i16":[2,4],"i32":[2,4],"i64":[2,4],"i8":[2,4]},"load_pipes":1,"multiprocessors":0,"name":"toy","pipe_bytes":0,"processor":"","register_bytes":2048,"shared_bytes":0,"stack_bytes":262144,"stream_dims":0,"stream_registers":0,"stream_repeats":0,"threads":2,"unroll_limit":64,"vector_bytes":[],"vector_registers":8,"warp_size":0}');
INSERT INTO "measurements" VALUES(1,1,1,7.94614737201482057571e+00,'','{"environment":{"huge_page_bytes":62006},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.074105+00:00');
INSERT INTO "measurements" VALUES(2,2,1,7.91559294681064784526e+00,'','{"environment":{"huge_page_bytes":60004},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.260483+00:00');
INSERT INTO "measurements" VALUES(3,3,1,4.3996737687848508358e+00,'','{"environment":{"huge_page_bytes":26193},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.260819+00:00');
INSERT INTO "measurements" VALUES(4,4,1,7.90932642063126,'','{"environment":{"huge_page_bytes":59593},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.261087+00:00');
INSERT INTO "measurements" VALUES(5,5,1,4.5780277797020971775e+00,'','{"environment":{"huge_page_bytes":37881},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.274166+00:00');
INSERT INTO "measurements" VALUES(6,6,1,7.40985698439180850982e+00,'','{"environment":{"huge_page_bytes":26860},"lines":7}',1,'{"run":0.0}','2026-11-21T15:59:07.287267+00:00');
INSERT INTO "measurements" VALUES(7,7,1,5.34844482108019292354e+00,'','{"environment":{"huge_page_bytes":22835},"lines":8}',1,'{"run":0.0}','2026-11-21T15:59:07.287598+00:00');
INSERT INTO "problems" VALUES(1,'2bc0c15d6f2b2a6ea1acd531903e062d13a97a6faffed195d544661283186b19',1,1,'k','32x64','f32','');
INSERT INTO "programs" VALUES(1,'f236b6d429b4def99fb4798a2fdef25dc75f6cc9a7bdc276809234ff9dcb97d0','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 64 t[{0},{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
');
INSERT INTO "programs" VALUES(2,'ea644ca3e5abf23caf13b4115693ac8f02711b842eb2f34eca28d64418e16cdd','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 4 16 t[{0},{1}*16+{2}] = exp(x[{0},{1}*16+{2}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
');
INSERT INTO "programs" VALUES(3,'665105268bf53afd7aad469db629c8d0fbc13ef6c90aba3af52261bf924d4194','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [32, 64] heap

32 64:p t[{0},{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0},{1}] + 1
');
INSERT INTO "programs" VALUES(4,'e8c99dc6065488f6359714ab0e90bdf2ec18cabfc9cb8a692742107b0dddbd96','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [2048] heap

32 64 t[{0}*64+{1}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{0}*64+{1}] + 1
');
INSERT INTO "programs" VALUES(5,'93f9a0eaa30cddd836b22a8e3a79f8c5d31e2c1d9b7cbe5c3da2fe65f50c0962','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [64, 32] heap

32 64:p t[{1},{0}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{1},{0}] + 1
');
INSERT INTO "programs" VALUES(6,'68ec63288f1cd001e74b5c267c007b7a788d3e4160eb663060a8f24cd28ed08f','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [64, 32] heap

32 64 t[{1},{0}] = exp(x[{0},{1}])
32 64 y[{0},{1}] = t[{1},{0}] + 1
');
INSERT INTO "programs" VALUES(7,'5933ae0702e7c17e93ba946a5c1351878005d1a3d6b174e3ea3dd10e857b6749','kernel k(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
t f32 [64, 32] heap

32
| 64:p t[{1},{0}] = exp(x[{0},{1}])
| 64 y[{0},{1}] = t[{1},{0}] + 1
');
INSERT INTO "runs" VALUES(1,'71bbe8e360e6cc90283766b7df391acc326fb65bddd3bf3a8a4bf8263ef691c1',1,1,1,'downhill','edges',1,'{"batch":3,"neighbourhood":{},"strategy":{"chance":0.2}}','2026-11-21T15:59:07.073133+00:00','2026-11-21T15:59:07.287911+00:00','finished');
INSERT INTO "settings" VALUES(1,'e1c582d9d888ad2ef63b6570f2c5708b6ef6e12d196ccc6e6157b97eaea9c85b',1,'text','','{"version":1}');
INSERT INTO "traces" VALUES(1,'bfe75b0603cf2b799003662424bf187ef64f0ca4b01d62d26c3b346a913149bb',1,1,'# pdojo trace 1
kernel k
machine toy
');
INSERT INTO "traces" VALUES(2,'4c687b2c570faf0b04ef0ee7e3bef22920841a0832028d2281ac08142111d585',1,2,'# pdojo trace 1
kernel k
machine toy
tile_scope@t:1{size=16}  ; %1
');
INSERT INTO "traces" VALUES(3,'0017d9ae5174e80f1c34ae3dcfc6dac6fa8deb6e0e0121d77d60a290dba03ac2',1,3,'# pdojo trace 1
kernel k
machine toy
parallelize@t:1  ; %1
');
INSERT INTO "traces" VALUES(4,'fd74ba100c4ef9f4e289d59b939d05a62d625fbc555be7a836971d1ef0651020',1,4,'# pdojo trace 1
kernel k
machine toy
collapse_dims@t:0
');
INSERT INTO "traces" VALUES(5,'aeec8ed733cc96286d3ac8e08cb9bd938096e0a393289acb28064cce7bdc51e3',1,5,'# pdojo trace 1
kernel k
machine toy
parallelize@t:1  ; %1
swap_dims@t:0
');
INSERT INTO "traces" VALUES(6,'7d5764a54edbf084363b3ef722521e51df27988d9137014254e661d3d460e0ab',1,6,'# pdojo trace 1
kernel k
machine toy
parallelize@t:1  ; %1
swap_dims@t:0
unmap@t:1  ; %1
');
INSERT INTO "traces" VALUES(7,'27731a29b4e0c84d1e602f969c3fef1bbd0c5ebfa362dbfc6150fbdf154bbd70',1,7,'# pdojo trace 1
kernel k
machine toy
parallelize@t:1  ; %1
swap_dims@t:0
join_scopes@t:0  ; %0
');
