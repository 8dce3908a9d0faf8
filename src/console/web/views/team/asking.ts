/** The team view's queries and mutations. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useMembership } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"

export type Member = Schemas["Member"]
export type Invite = Schemas["Invite"]
export type Plan = Schemas["TenantPlan"]
export type Role = Member["role"]

const path = () => ({ tenant_id: tenantId() })

export const useManages = (): boolean => {
  const membership = useMembership()
  return membership !== undefined && membership.role !== "member"
}

export const useMembers = () =>
  useQuery({
    queryKey: ["team", tenantId(), "members"],
    queryFn: async () =>
      (await resultOf(api.GET("/v1/tenants/{tenant_id}/members", { params: { path: path() } }))).members
  })

export const useInvites = (isEnabled: boolean) =>
  useQuery({
    queryKey: ["team", tenantId(), "invites"],
    enabled: isEnabled,
    queryFn: async () =>
      (await resultOf(api.GET("/v1/tenants/{tenant_id}/invites", { params: { path: path() } }))).invites
  })

export const usePlan = () =>
  useQuery({
    queryKey: ["team", tenantId(), "plan"],
    queryFn: () => resultOf(api.GET("/v1/tenants/{tenant_id}/plan", { params: { path: path() } }))
  })

/** Returns a mutation that invalidates the team's queries, even if the change fails. */
export const useChange = <A, B>(change: (what: A) => Promise<B>, onDone: (result: B, what: A) => void) => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: change,
    onSuccess: onDone,
    onSettled: () => {
      // The plan decides who is allowed to spend, so the payers and the balance can change too.
      for (const about of ["team", "memberships", "payers", "balance"])
        void queries.invalidateQueries({ queryKey: [about] })
    }
  })
}

interface MemberChange {
  readonly account_id: string
  readonly change: Schemas["MemberChange"]
}

export const changeMember = ({ account_id, change }: MemberChange): Promise<Member> =>
  resultOf(
    api.PATCH("/v1/tenants/{tenant_id}/members/{account_id}", {
      params: { path: { ...path(), account_id } },
      body: change
    })
  )

export const removeMember = (account_id: string): Promise<Member> =>
  resultOf(api.DELETE("/v1/tenants/{tenant_id}/members/{account_id}", { params: { path: { ...path(), account_id } } }))

export const invite = (body: Schemas["NewInvite"]): Promise<Invite> =>
  resultOf(api.POST("/v1/tenants/{tenant_id}/invites", { params: { path: path() }, body }))

export const takeBack = (invite_id: string): Promise<Invite> =>
  resultOf(api.DELETE("/v1/tenants/{tenant_id}/invites/{invite_id}", { params: { path: { ...path(), invite_id } } }))

export const changePlan = (body: Schemas["PlanChange"]): Promise<Plan> =>
  resultOf(api.PUT("/v1/tenants/{tenant_id}/plan", { params: { path: path() }, body }))

/** Returns a window of `days` UTC days that ends with today. */
export const windowOf = (days: number): { readonly start_date: string; readonly end_date: string } => {
  const day = 86_400_000
  const end = (Math.floor(Date.now() / day) + 1) * day
  return { start_date: new Date(end - days * day).toISOString(), end_date: new Date(end).toISOString() }
}
