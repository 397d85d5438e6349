//! Faults that were reported in public, as small inputs of our own. Each names where it was reported.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use scantling_manifest::{Candidate, Discovery, Options, Role, Route, What, discover};

const APP: &str =
    "registry.example.com/lab/app@sha256:7dd5aa540ddce2e323e2209cb9f50cf4948cb79f17eed96b7bbc33b31a0eca5d";
const HEX: &str = "48d571da8f5d4b128badeacf52cd95ff63d2d4ce6d8ec84af90be364cd85ca7a";

fn look(files: &[(&str, &str)]) -> Discovery {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    discover(&files, &Options::default())
}

fn references(found: &Discovery) -> Vec<String> {
    found.candidates.iter().filter_map(Candidate::reference).map(ToString::to_string).collect()
}

fn placeholders(found: &Discovery) -> Vec<&str> {
    let is = |candidate: &&Candidate| matches!(candidate.what, What::Placeholder { .. });
    found.candidates.iter().filter(is).map(|candidate| candidate.written.as_str()).collect()
}

fn findings(found: &Discovery) -> Vec<&'static str> {
    found.findings.iter().map(|finding| finding.code.as_str()).collect()
}

fn field(candidate: &Candidate) -> &str {
    candidate.place.field.as_deref().unwrap_or_default()
}

/// carvel-dev/kbld#344: a policy's pattern under a key called `image`.
#[test]
fn a_pattern_is_no_reference() {
    let found = look(&[(
        "policy.yaml",
        "kind: ClusterPolicy\nspec:\n  rules:\n  - validate:\n      pattern:\n        spec:\n          containers:\n          - image: \
         'registry.example.com/* | !mirror.example.net/*'\n",
    )]);
    assert_eq!(references(&found), Vec::<String>::new());
    assert!(matches!(found.candidates[0].what, What::Decoy { .. }), "{:?}", found.candidates);
    assert_eq!(findings(&found), Vec::<&str>::new());
}

/// openshift/oc-mirror#1356: an image that only a Helm hook uses.
#[test]
fn a_hook_says_when_it_runs() {
    let found = look(&[(
        "job.yaml",
        "kind: Job\nmetadata: {name: init, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\nspec: {template: {spec: {containers: \
         [{name: pg, image: 'registry.example.com/data/pg:16', imagePullPolicy: Always}]}}}\n",
    )]);
    assert_eq!(references(&found), ["registry.example.com/data/pg:16"]);
    assert_eq!(found.candidates[0].condition.as_deref(), Some("Helm runs the hook pre-install,pre-upgrade"));
    assert_eq!(found.candidates[0].pull_policy.as_deref(), Some("Always"));
}

/// zarf-dev/zarf#4022 and the decoys of real manifests: colons and slashes that make no image.
#[test]
fn names_with_colons_are_no_images() {
    let found = look(&[(
        "rbac.yaml",
        "kind: ClusterRoleBinding\nmetadata: {name: 'lab:system:auth-delegator', labels: {a: 'x/y:1.2'}}\nroleRef: {apiGroup: \
         rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:auth-delegator'}\n---\nkind: ConfigMap\nmetadata: {name: misc}\n\
         data:\n  endpoint: 'db.example.com:5432'\n  window: '08:30'\n  when: '2024-06-01T10:00:00Z'\n  arn: 'arn:aws:iam::0:role/x'\n  \
         url: 'https://quay.io/a/b:1'\n  sha: 'sha256:48d571da8f5d4b128badeacf52cd95ff63d2d4ce6d8ec84af90be364cd85ca7a'\n  commit: \
         955afa6\n  resource: nvidia.com/gpu\n  socket: 'localhost:8080/healthz/ready'\n  service: 'a.b.svc:8033/x/y'\n---\nkind: ServingRuntime\nspec: {grpcEndpoint: \
         'port:8085'}\n---\nkind: Deployment\nspec: {template: {spec: {containers: [{name: x, env: [{name: RELATED_IMAGE_X_UPSTREAM_VERSION, \
         value: '1.2.3'}, {name: RELATED_IMAGE_Y_UPSTREAM_VERSION, value: 0.24.0+rhaiv.9}]}]}}}\n",
    )]);
    assert_eq!(references(&found), Vec::<String>::new());
    assert!(
        found.candidates.iter().all(|candidate| matches!(candidate.what, What::Decoy { .. })),
        "{:#?}",
        found.candidates
    );
    assert_eq!(findings(&found), Vec::<&str>::new());
}

/// prometheus-community/helm-charts#4161: images as flags, in both spellings.
#[test]
fn flags_carry_images() {
    let found = look(&[(
        "operator.yaml",
        "kind: Deployment\nspec: {template: {spec: {containers: [{name: op, image: registry.example.com/op/operator:v0.70.0, args: \
         [--kubelet-service=kube-system/kubelet, '--config-reloader=registry.example.com/op/reloader:v0.70.0', --base-image, \
         'registry.example.com/op/base:v1', '--web.listen-address=:8080', '--bind=0.0.0.0:80', --log-level=info]}]}}}\n",
    )]);
    assert_eq!(
        references(&found),
        [
            "registry.example.com/op/operator:v0.70.0",
            "registry.example.com/op/reloader:v0.70.0",
            "registry.example.com/op/base:v1"
        ]
    );
    let routes: Vec<String> =
        found.candidates.iter().take(3).map(|candidate| candidate.route.to_string()).collect();
    assert_eq!(routes, ["direct", "argument config-reloader", "argument base-image"]);
    assert_eq!(field(&found.candidates[1]), ".spec.template.spec.containers[0].args[1]");
}

/// kubernetes-sigs/kustomize#6238: an image volume in a pod of a `CronJob`.
#[test]
fn image_volumes_are_references() {
    let found = look(&[(
        "cron.yaml",
        "kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: registry.example.com/job:1}], volumes: \
         [{name: m, image: {reference: 'registry.example.com/models/bert:3', pullPolicy: IfNotPresent}}]}}}}}\n",
    )]);
    assert_eq!(references(&found), ["registry.example.com/job:1", "registry.example.com/models/bert:3"]);
    assert_eq!(found.candidates[1].pull_policy.as_deref(), Some("IfNotPresent"));
}

/// kserve/kserve#1965: JSON in a config map, image and version apart.
#[test]
fn an_image_and_its_version_are_joined() {
    let text = "kind: ConfigMap\nmetadata: {name: serving, namespace: kserve}\ndata:\n  agent: |-\n    {\"image\": \
                \"registry.example.com/agent:v0.9\", \"memory\": \"1Gi\"}\n  predictors: |-\n    {\"tensorflow\": {\"image\": \
                \"registry.example.com/tf\", \"defaultImageVersion\": \"2.6.2\", \"defaultGpuImageVersion\": \"2.6.2-gpu\"}}\n";
    let found = look(&[("config.yaml", text)]);
    assert_eq!(
        references(&found),
        [
            "registry.example.com/agent:v0.9",
            "registry.example.com/tf:2.6.2",
            "registry.example.com/tf:2.6.2-gpu"
        ]
    );
    let joined = &found.candidates[2];
    let What::Joined { parts, .. } = &joined.what else { panic!("{joined:?}") };
    assert_eq!(parts.iter().map(|part| part.role).collect::<Vec<_>>(), [Role::Name, Role::Tag]);
    assert_eq!(
        parts[1].place.field.as_deref(),
        Some(".data.predictors › .tensorflow.defaultGpuImageVersion")
    );
    let file = parts[1].place.file.as_ref().unwrap();
    let (start, end) = file.span.unwrap();
    assert_eq!(&text[start..end], "\"2.6.2-gpu\"");
    assert_eq!(file.line, 7);
    assert!(joined.nested);
    assert_eq!(joined.place.object.as_deref(), Some("ConfigMap kserve/serving"));
}

/// redhat-openshift-ecosystem/certified-operators#1514: what a bundle lists and what it uses.
#[test]
fn listed_and_used_are_told_apart() {
    let found = look(&[(
        "csv.yaml",
        &format!(
            "kind: ClusterServiceVersion\nmetadata:\n  name: lab.v1\n  annotations:\n    containerImage: registry.example.com/lab/op:1\n    \
             alm-examples: '[{{\"kind\": \"Lab\", \"spec\": {{\"image\": \"registry.example.com/lab/example:1\"}}}}]'\nspec:\n  \
             relatedImages:\n  - {{name: operator, image: {APP}}}\n  install: {{spec: {{deployments: [{{name: op, spec: {{template: {{spec: \
             {{containers: [{{name: m, image: {APP}, env: [{{name: RELATED_IMAGE_DAEMON, value: registry.example.com/lab/daemon:2.1}}]}}]}}}}}}}}]}}}}\n"
        ),
    )]);
    let routes: Vec<(String, Route)> = found
        .candidates
        .iter()
        .map(|candidate| {
            (candidate.reference().unwrap().tag().unwrap_or("-").to_owned(), candidate.route.clone())
        })
        .collect();
    assert_eq!(
        routes,
        [
            ("1".to_owned(), Route::Noted),
            ("1".to_owned(), Route::Noted),
            ("-".to_owned(), Route::Listed),
            ("-".to_owned(), Route::Direct),
            ("2.1".to_owned(), Route::Environment("RELATED_IMAGE_DAEMON".to_owned())),
        ]
    );
}

/// trustyai-explainability/trustyai-service-operator#796 and the fallback of a dashboard's source: built-in defaults.
#[test]
fn built_in_defaults_are_fallbacks() {
    let source =
        format!("const image = process.env.EVAL_IMAGE || '{APP}';\nexport const DEFAULT_OVMS = \"{APP}\";\n");
    let found = look(&[("src/const.ts", &source), ("deploy.sh", &format!("IMG=${{EVAL_IMAGE:-{APP}}}\n"))]);
    let seen: Vec<(String, &str)> = found
        .candidates
        .iter()
        .map(|candidate| (candidate.route.to_string(), candidate.condition.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        seen,
        [
            ("fallback for EVAL_IMAGE".to_owned(), "environment variable EVAL_IMAGE is unset or empty"),
            ("fallback for EVAL_IMAGE".to_owned(), "environment variable EVAL_IMAGE is unset or empty"),
            ("source text".to_owned(), "the code uses DEFAULT_OVMS"),
        ]
    );
    assert!(found.candidates.iter().all(Candidate::is_fallback));
    let place = found.candidates[2].place.file.as_ref().unwrap();
    assert_eq!((place.line, place.column), (2, 30));
    let (start, end) = place.span.unwrap();
    assert_eq!(&source[start..end], APP);
}

/// opendatahub-io/odh-dashboard#3430: `sha256:` twice, in a script inside an object.
#[test]
fn a_doubled_digest_prefix_is_found_in_a_script() {
    let text = format!(
        "kind: CronJob\nspec: {{jobTemplate: {{spec: {{template: {{spec: {{containers: [{{name: c, image: registry.example.com/cli:4, \
         command: [sh, -c], args: [\"cat <<'X' | oc apply -f -\\nkind: ImageStream\\nspec:\\n  tags:\\n  - from: {{kind: DockerImage, name: \
         'registry.example.com/nb/conda@sha256:sha256:{HEX}'}}\\nX\\n\"]}}]}}}}}}}}}}\n"
    );
    let found = look(&[("job.yaml", &text)]);
    assert_eq!(references(&found), ["registry.example.com/cli:4"]);
    assert_eq!(findings(&found), ["SCN0101"]);
    let finding = &found.findings[0];
    assert!(finding.message.contains("written twice"), "{finding:?}");
    let (start, end) = finding.place.file.as_ref().unwrap().span.unwrap();
    assert_eq!(text[start..end], format!("registry.example.com/nb/conda@sha256:sha256:{HEX}"));
}

/// opendatahub-io/odh-dashboard#911: nothing before the tag.
#[test]
fn an_empty_repository_is_malformed() {
    let found = look(&[(
        "nb.yaml",
        "kind: Notebook\nspec: {template: {spec: {containers: [{name: n, image: ':py3.8-v1'}]}}}\n",
    )]);
    assert_eq!(findings(&found), ["SCN0101"]);
    let found = look(&[(
        "nb.yaml",
        "kind: Notebook\nspec: {template: {spec: {containers: [{name: n, image: ''}]}}}\n",
    )]);
    assert_eq!(findings(&found), ["SCN0103"]);
}

/// argoproj-labs/argocd-image-updater#245 and podman's skopeo#2745: a digest as a tag; tag and digest.
#[test]
fn tag_and_digest_are_checked() {
    let found = look(&[(
        "pod.yaml",
        &format!(
            "kind: Pod\nspec: {{containers: [{{name: a, image: 'registry.example.com/a:sha256:{HEX}'}}, {{name: b, image: \
             'registry.example.com/b:1@sha256:{HEX}'}}]}}\n"
        ),
    )]);
    assert_eq!(findings(&found), ["SCN0101", "SCN0106"]);
    let What::Malformed { suggestion, .. } = &found.candidates[0].what else {
        panic!("{:?}", found.candidates)
    };
    assert_eq!(suggestion.as_deref(), Some(format!("registry.example.com/a@sha256:{HEX}").as_str()));
}

/// kubernetes-sigs/kustomize#3480: a key given twice.
#[test]
fn a_repeated_key_is_named_with_both_places() {
    let found = look(&[(
        "web.yaml",
        "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        image: \
         registry.example.com/web:1\n        env: [{name: A, value: '1'}]\n        env: [{name: B, value: '2'}]\n---\nkind: Pod\nspec: \
         {containers: [{name: c, image: registry.example.com/other:1}]}\n",
    )]);
    assert_eq!(findings(&found), ["SCN0602"]);
    let finding = &found.findings[0];
    assert_eq!(
        finding.place.to_string(),
        "web.yaml:10:9 Deployment web .spec.template.spec.containers[0].env"
    );
    assert_eq!(finding.related[0].0.to_string(), "web.yaml:9:9");
    assert_eq!(references(&found), ["registry.example.com/web:1", "registry.example.com/other:1"]);
}

/// kubernetes-sigs/kustomize#3824: an image given by an alias.
#[test]
fn an_alias_is_a_reference_too() {
    let found = look(&[(
        "two.yaml",
        "kind: Pod\nspec:\n  containers:\n  - {name: a, image: &img docker.io/library/busybox}\n  - {name: b, image: *img}\n",
    )]);
    assert_eq!(references(&found), ["docker.io/library/busybox", "docker.io/library/busybox"]);
    let fields: Vec<&str> = found.candidates.iter().map(field).collect();
    assert_eq!(fields, [".spec.containers[0].image", ".spec.containers[1].image"]);
}

/// bookingcom/shipper#102 and bjw-s-labs/helm-charts#229: tags that are numbers.
#[test]
fn a_numeric_tag_keeps_its_text() {
    for (tag, image) in
        [("20190612073634", "a/api:20190612073634"), ("14.10", "a/api:14.10"), ("1e3", "a/api:1e3")]
    {
        let text = format!("image:\n  repository: registry.example.com/a/api\n  tag: {tag}\n");
        let found = look(&[("values.yaml", &text)]);
        assert_eq!(references(&found), [format!("registry.example.com/{image}")]);
        assert_eq!(findings(&found), ["SCN0109"]);
        let found = look(&[("values.yaml", &text.replace(tag, &format!("'{tag}'")))]);
        assert_eq!(findings(&found), Vec::<&str>::new());
    }
}

/// dependabot/dependabot-core#11073: byte order marks; and line ends of other systems.
#[test]
fn marks_and_line_ends_do_not_matter() {
    let text = "kind: Pod\nmetadata: {name: bom}\nspec: {containers: [{name: c, image: 'registry.example.com/lab/a:1'}]}\n";
    let utf16 = |unit: fn(u16) -> [u8; 2]| {
        format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect::<Vec<u8>>()
    };
    for bytes in [
        text.as_bytes().to_vec(),
        format!("\u{feff}{text}").into_bytes(),
        text.replace('\n', "\r\n").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
    ] {
        let found = discover(&BTreeMap::from([("a.yaml".to_owned(), bytes)]), &Options::default());
        assert_eq!(references(&found), ["registry.example.com/lab/a:1"]);
        assert_eq!(found.candidates[0].place.to_string(), "a.yaml:3:39 Pod bom .spec.containers[0].image");
    }
}

/// kubernetes-sigs/kustomize#4908: three dashes inside a block scalar are text, and the text a document.
#[test]
fn dashes_in_a_block_do_not_end_the_document() {
    let found = look(&[(
        "bundle.yaml",
        "kind: ConfigMap\nmetadata: {name: bundle}\ndata:\n  tls.crt: |\n    -----BEGIN CERTIFICATE-----\n    AAAA\n    -----END \
         CERTIFICATE-----\n  extra.yaml: |\n    ---\n    kind: Pod\n    spec: {containers: [{name: c, image: \
         registry.example.com/inner:1}]}\n    ---\n    note: 'a --- b'\n",
    )]);
    assert_eq!(found.documents.len(), 1);
    assert_eq!(references(&found), ["registry.example.com/inner:1"]);
    assert_eq!(field(&found.candidates[0]), ".data[\"extra.yaml\"] › .spec.containers[0].image");
    assert_eq!(found.candidates[0].place.file.as_ref().unwrap().line, 11);
}

/// fluxcd/flux2#2148: a variable without a value is an error in a reference and nobody's business in a script.
#[test]
fn an_undefined_variable_is_an_error_in_a_reference() {
    let files = [(
        "exporter.yaml",
        "kind: Deployment\nspec: {template: {spec: {containers: [{name: e, image: '${REGISTRY}/obs/exporter:${TAG:-1.4}'}]}}}\n---\nkind: \
         ConfigMap\ndata: {run.sh: 'echo ${HOME} ${base}'}\n",
    )];
    let found = look(&files);
    assert_eq!(placeholders(&found), ["${REGISTRY}/obs/exporter:${TAG:-1.4}"]);
    assert_eq!(findings(&found), ["SCN0102"]);
    let files = BTreeMap::from([(files[0].0.to_owned(), files[0].1.as_bytes().to_vec())]);
    let values = BTreeMap::from([("REGISTRY".to_owned(), "registry.example.com".to_owned())]);
    let found = discover(&files, &Options { values });
    assert_eq!(references(&found), ["registry.example.com/obs/exporter:1.4"]);
    assert_eq!(found.candidates[0].route, Route::Fallback("TAG".to_owned()));
    assert_eq!(findings(&found), Vec::<&str>::new());
}

/// opendatahub-io/odh-manifests#809: placeholders of all kinds that nothing replaces.
#[test]
fn placeholders_are_never_references() {
    let written = [
        "$(rt-openvino)",
        "mlserver-0:replace",
        "{{ .Values.triton.image }}",
        "<ovms_image>",
        "REPLACE_IMAGE:v0.0.0-placeholder",
        "nb-n_PLACEHOLDER",
    ];
    let containers: Vec<String> =
        written.iter().map(|image| format!("{{name: c, image: '{image}'}}")).collect();
    let found = look(&[(
        "rt.yaml",
        &format!("kind: ServingRuntime\nspec: {{containers: [{}]}}\n", containers.join(", ")),
    )]);
    assert_eq!(references(&found), Vec::<String>::new());
    assert_eq!(placeholders(&found), written);
    assert_eq!(findings(&found), ["SCN0102"; 6]);
}

/// opendatahub-io/notebooks#2920 and #3464: replacements by index that miss, and parameters that do not exist.
#[test]
fn replacements_are_followed() {
    let kustomization = "resources: [is.yaml]\nconfigMapGenerator: [{name: params, envs: [params.env]}]\nreplacements:\n- source: {kind: \
                         ConfigMap, name: params, fieldPath: data.nb-n}\n  targets: [{select: {kind: ImageStream, name: nb}, fieldPaths: \
                         [spec.tags.0.from.name, spec.tags.2.from.name]}]\n- source: {kind: ConfigMap, name: params, fieldPath: \
                         data.missing}\n  targets: [{select: {kind: ImageStream, name: nb}, fieldPaths: [spec.tags.1.from.name]}]\n";
    let stream = "kind: ImageStream\nmetadata: {name: nb}\nspec:\n  tags:\n  - {name: a, from: {kind: DockerImage, name: nb-n_PLACEHOLDER}}\n  - \
                  {name: b, from: {kind: DockerImage, name: nb-1_PLACEHOLDER}}\n";
    let params = format!("nb-n={APP}\nnb-1={APP}\n");
    let found = look(&[
        ("base/kustomization.yaml", kustomization),
        ("base/is.yaml", stream),
        ("base/params.env", &params),
    ]);
    assert_eq!(placeholders(&found), ["nb-n_PLACEHOLDER", "nb-1_PLACEHOLDER"]);
    let filled: Vec<usize> = found
        .candidates
        .iter()
        .filter_map(|candidate| match &candidate.what {
            What::Placeholder { filled_by, .. } => {
                Some(filled_by.iter().filter(|filling| filling.value == APP).count())
            }
            _ => None,
        })
        .collect();
    assert_eq!(filled, [1, 0]);
    let mut codes = findings(&found);
    codes.sort_unstable();
    // The second tag stays open, one index leads past the end, one parameter is not there and one is not read.
    assert_eq!(codes, ["SCN0102", "SCN0107", "SCN0108", "SCN0110"]);
    let missed = found.findings.iter().find(|finding| finding.code.as_str() == "SCN0107").unwrap();
    assert_eq!(missed.message, "spec.tags.2.from.name leads to element 2, and the list has 2");
    assert_eq!(missed.related[0].0.to_string(), "base/is.yaml:5:5 ImageStream nb");
}

/// The dashboard's own runtime in red-hat-data-services/odh-deployer at rhods-1.33: a kustomize image fills a bare name.
#[test]
fn kustomize_images_fill_names() {
    let digest = format!("sha256:{HEX}");
    let found = look(&[
        (
            "kustomization.yaml",
            &format!(
                "resources: [a.yaml]\nimages: [{{name: ovms-1, newName: registry.example.com/ovms, digest: '{digest}'}}]\n"
            ),
        ),
        (
            "a.yaml",
            "kind: ServingRuntime\nmetadata: {name: x}\nspec: {containers: [{name: c, image: ovms-1}]}\n",
        ),
        ("other.yaml", "kind: Pod\nspec: {containers: [{name: c, image: ovms-1}]}\n"),
    ]);
    let What::Placeholder { filled_by, .. } = &found.candidates[0].what else {
        panic!("{:?}", found.candidates)
    };
    assert_eq!(filled_by[0].value, format!("registry.example.com/ovms@{digest}"));
    assert!(matches!(found.candidates[1].what, What::Joined { .. }));
    // A file that the kustomization does not build from keeps its name.
    assert!(matches!(found.candidates[2].what, What::Reference { .. }));
    assert_eq!(findings(&found), Vec::<&str>::new());
}

/// Templates, image streams and builds of OpenShift, as in red-hat-data-services/odh-deployer at v1.5.0.
#[test]
fn openshift_objects_are_understood() {
    let found = look(&[(
        "list.yaml",
        "kind: List\nitems:\n- kind: ImageStream\n  metadata: {name: cuda, namespace: ns}\n  spec: {tags: [{name: '11.0', from: {kind: \
         DockerImage, name: 'nvcr.io/nvidia/cuda:11.0'}}]}\n- kind: BuildConfig\n  metadata: {name: b}\n  spec:\n    output: {to: {kind: \
         ImageStreamTag, name: 'tensorflow:py3.8'}}\n    strategy: {sourceStrategy: {from: {kind: ImageStreamTag, name: 'cuda:11.0', \
         namespace: ns}}}\n- kind: Template\n  metadata: {name: t}\n  parameters: [{name: OVMS, value: 'registry.example.com/ovms:1'}, \
         {name: OTHER, required: true}]\n  objects: [{kind: Pod, spec: {containers: [{name: a, image: '${OVMS}'}, {name: b, image: \
         '${OTHER}'}]}}]\n",
    )]);
    let seen: Vec<(String, String)> = found
        .candidates
        .iter()
        .map(|candidate| {
            let what = match &candidate.what {
                What::ImageStreamTag { stream, tag, .. } => format!("stream {stream} tag {tag}"),
                What::Placeholder { filled_by, .. } => {
                    format!("placeholder filled by {:?}", filled_by[0].value)
                }
                What::Reference { reference } => reference.to_string(),
                other => panic!("{other:?}"),
            };
            (what, format!("{} {}", candidate.route, candidate.place.object.as_deref().unwrap_or_default()))
        })
        .collect::<Vec<_>>();
    let wanted = [
        ("nvcr.io/nvidia/cuda:11.0", "direct ImageStream ns/cuda"),
        ("stream tensorflow tag py3.8", "pushed by a build BuildConfig b"),
        ("stream cuda tag 11.0", "direct BuildConfig b"),
        ("registry.example.com/ovms:1", "default of parameter OVMS Template t"),
        ("placeholder filled by \"registry.example.com/ovms:1\"", "direct Template t"),
        ("placeholder filled by \"\"", "direct Template t"),
    ];
    assert_eq!(seen, wanted.map(|(what, route)| (what.to_owned(), route.to_owned())));
    assert_eq!(findings(&found), Vec::<&str>::new());
}

/// Helm charts that are not rendered: the template is no YAML, and the values hold the image in parts.
#[test]
fn a_chart_is_looked_through_without_rendering() {
    let template = "{{- if .Values.on }}\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: x\n        image: \
                    \"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}\"\n      - name: y\n        image: \
                    quay.io/a/b:1 # fixed\n{{- end }}\n";
    let values = "image:\n  repository: registry.example.com/app\n  tag: v1\non: true\n";
    let found = look(&[("chart/templates/a.yaml", template), ("chart/values.yaml", values)]);
    assert_eq!(references(&found), ["quay.io/a/b:1", "registry.example.com/app:v1"]);
    let What::Placeholder { filled_by, .. } = &found.candidates[0].what else {
        panic!("{:?}", found.candidates)
    };
    let values: Vec<&str> = filled_by.iter().map(|filling| filling.value.as_str()).collect();
    assert_eq!(values, ["registry.example.com/app", "v1"]);
    assert_eq!(found.candidates[0].place.file.as_ref().unwrap().line, 8);
    assert_eq!(findings(&found), ["SCN0601"]);
}

/// What may be secret is never shown, not even as a candidate.
#[test]
fn secrets_are_not_shown() {
    let found = look(&[
        (
            "a.yaml",
            "kind: Secret\nstringData: {password: 'swordfish/x:1.2', config: '{\"p\": \"swordfish/y:1.2\"}'}\n---\nkind: Pod\nspec: {containers: \
         [{name: x, env: [{name: DB_PASSWORD, value: 'swordfish/z:1.2'}]}]}\n",
        ),
        ("a.env", "API_TOKEN=swordfish/x:1.2\n"),
    ]);
    let shown = format!("{:?} {:?}", found.candidates, found.findings);
    assert!(!shown.contains("swordfish"), "{shown}");
}

/// opendatahub-io/odh-dashboard#7788: a pipeline inside a program's tree, with an image by digest.
#[test]
fn an_embedded_pipeline_is_opened() {
    let text = format!(
        "components: {{}}\ndeploymentSpec:\n  executors:\n    exec-a:\n      container:\n        command: [sh]\n        image: \
         registry.example.com/rhoai/autorag@sha256:{HEX}\n---\nplatforms: {{kubernetes: {{deploymentSpec: {{executors: {{exec-a: {{imagePullPolicy: \
         [Always]}}}}}}}}}}\n"
    );
    let found = look(&[("src/pipeline.yaml", &text)]);
    assert_eq!(references(&found), [format!("registry.example.com/rhoai/autorag@sha256:{HEX}")]);
    let template = format!("export const pipeline = `\n{text}`;\n");
    assert_eq!(references(&look(&[("src/pipeline.ts", &template)])), references(&found));
}

/// operator-framework/operator-registry#292: the index of a catalogue is pulled like any image.
#[test]
fn the_index_of_a_catalogue_is_an_image() {
    let found = look(&[(
        "source.yaml",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c}\nspec:\n  sourceType: grpc\n  image: registry.example.com/lab/catalog-index:v1.0.0\n",
    )]);
    assert_eq!(references(&found), ["registry.example.com/lab/catalog-index:v1.0.0"]);
    assert!(!matches!(found.candidates[0].what, What::Decoy { .. }), "{:?}", found.candidates);
    assert_eq!(findings(&found), Vec::<&str>::new());
}
