#include "sandbox/sandbox_internal.h"

static const struct {
    const char *name;
    const char *text;
} features[] = {
#define FEATURE_ROW(id, name, what) [id] = {(name), (what)},
    SANDBOX_FEATURES(FEATURE_ROW)
#undef FEATURE_ROW
};

static const char *const stages[] = {
#define STAGE_ROW(id, text) [id] = (text),
    SANDBOX_STAGES(STAGE_ROW)
#undef STAGE_ROW
};

static const char *const origins[] = {
#define ORIGIN_ROW(id, text) [id] = (text),
    PLAN_ORIGINS(ORIGIN_ROW)
#undef ORIGIN_ROW
};

bool
sandbox_feature_is_wall(enum sandbox_feature f)
{
    return f != FEATURE_AUDIT_RECORDS;
}

const char *
sandbox_feature_name(enum sandbox_feature f)
{
    SY_ASSERT((size_t)f < FEATURE_COUNT);
    return features[f].name;
}

const char *
sandbox_feature_text(enum sandbox_feature f)
{
    SY_ASSERT((size_t)f < FEATURE_COUNT);
    return features[f].text;
}

const char *
feature_state_name(enum feature_state s)
{
    switch (s) {
    case FEATURE_ENFORCED:
        return "enforced";
    case FEATURE_EMULATED:
        return "emulated";
    case FEATURE_ABSENT:
        break;
    }
    return "absent";
}

const char *
sandbox_stage_text(enum sandbox_stage s)
{
    SY_ASSERT((size_t)s < sizeof(stages) / sizeof(stages[0]));
    return stages[s];
}

const char *
plan_origin_text(enum plan_origin origin)
{
    SY_ASSERT((size_t)origin < sizeof(origins) / sizeof(origins[0]));
    return origins[origin];
}
