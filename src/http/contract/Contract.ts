/**
 * The contract without groups. `Api` adds all groups to it. Handlers add only their own group, because the platform matches handlers by the
 * contract's id and the group's name.
 */
import { HttpApi } from "@effect/platform"

export const contract = HttpApi.make("tollgate")
