/** Lists the user's notifications from all tenants, each with a link to its subject. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import type { LinkProps } from "@tanstack/react-router"
import { ArrowLeftRight, Bell, CheckCheck, MailOpen, TriangleAlert, UserPlus } from "lucide-react"
import type { LucideIcon } from "lucide-react"
import { useMemberships } from "../../app/Asking.ts"
import { api, resultOf, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { switchTo } from "../../app/Switching.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Page } from "../../parts/Page.tsx"
import { advice, Answer, Empty } from "../../parts/States.tsx"
import { NumberedPages } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { notificationsTexts } from "../../texts/notifications.ts"

type Notification = Schemas["Notification"]

const route = getRouteApi("/person/notifications")
const perPage = 25

const icons: Readonly<Record<Notification["kind"], LucideIcon>> = {
  transfer_received: ArrowLeftRight,
  transfer_ended: ArrowLeftRight,
  tenant_invite: UserPlus,
  low_balance: TriangleAlert,
  auto_reload_failed: TriangleAlert,
  budget_reached: TriangleAlert,
  budget_raised: TriangleAlert
}

/** Returns a notification's target view, with the tenant to switch to, if any. Returns `undefined` if there is no such view. */
const targetOf = ({
  data,
  kind
}: Notification): { readonly link: Pick<LinkProps, "to" | "search">; readonly tenant?: string } | undefined => {
  const { tenant_id, transfer_id } = data
  if (transfer_id !== undefined) return { link: { to: "/transfers", search: { transfer: transfer_id } } }
  if (kind === "tenant_invite" || kind.startsWith("budget_") || tenant_id === undefined) return undefined
  return { link: { to: "/credit" }, tenant: tenant_id }
}

const useRead = () => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: async (id: string): Promise<void> => {
      await resultOf(api.POST("/v1/notifications/{id}/read", { params: { path: { id } } }))
    },
    onError: (error) => toast(advice(error), "bad"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["notifications"] })
  })
}

/** Returns a mutation that marks all notifications up to `newest` as read, or all of them without `newest`. */
const useReadAll = () => {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (newest: string | undefined) =>
      resultOf(api.POST("/v1/notifications/read", { body: newest === undefined ? {} : { up_to: newest } })),
    onError: (error) => toast(advice(error), "bad"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["notifications"] })
  })
}

const Item = ({ of: notification }: { readonly of: Notification }) => {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const read = useRead()
  const { data: memberships } = useMemberships()
  const { created_at, id, kind, read_at, text, title } = notification
  const Icon = icons[kind]
  const about = targetOf(notification)
  const tenant = memberships?.find(({ tenant_id }) => tenant_id === notification.data["tenant_id"])
  const open = async (): Promise<void> => {
    if (about === undefined) return
    if (read_at === null) read.mutate(id)
    try {
      if (about.tenant !== undefined && about.tenant !== tenantId()) await switchTo(about.tenant, queries)
      await navigate(about.link)
    } catch (error) {
      toast(advice(error), "bad")
    }
  }
  return (
    <li className="notifications-item" data-unread={read_at === null || undefined}>
      <Icon size={16} strokeWidth={1.75} aria-hidden />
      <div className="notifications-words">
        <p className="row wrap">
          <strong>{title}</strong>
          {read_at === null ? <Badge tone="accent">{notificationsTexts.isUnread}</Badge> : null}
          {tenant === undefined ? null : <span className="quiet small">{tenant.tenant_name}</span>}
        </p>
        <p>{text}</p>
        <p className="quiet small">
          <When at={created_at} />
        </p>
      </div>
      <div className="row wrap notifications-actions">
        {about === undefined ? null : <Button onPress={() => void open()}>{notificationsTexts.open[kind]}</Button>}
        {read_at === null ? (
          <Button
            kind="ghost"
            icon={MailOpen}
            aria-label={notificationsTexts.markRead}
            isPending={read.isPending}
            onPress={() => read.mutate(id)}
          />
        ) : null}
      </div>
    </li>
  )
}

export const Notifications = () => {
  const { page: text } = route.useSearch()
  const navigate = useNavigate()
  const page = Math.max(1, Number(text ?? 1) || 1)
  const readAll = useReadAll()
  const notifications = useQuery({
    queryKey: ["notifications", "page", page],
    queryFn: () =>
      resultOf(api.GET("/v1/notifications", { params: { query: { page: String(page), per_page: String(perPage) } } })),
    placeholderData: keepPreviousData
  })
  const newest = page === 1 ? notifications.data?.records[0]?.id : undefined
  const go = (to: number): void => void navigate({ to: "/notifications", search: { page: String(to) } })
  return (
    <Page
      title={notificationsTexts.title}
      lead={notificationsTexts.lead}
      actions={
        (notifications.data?.unread ?? 0) === 0 ? null : (
          <Button icon={CheckCheck} isPending={readAll.isPending} onPress={() => readAll.mutate(newest)}>
            {notificationsTexts.markAll}
          </Button>
        )
      }
    >
      <Answer of={notifications} lines={6}>
        {({ records, total_records }) =>
          total_records === 0 ? (
            <Empty icon={Bell} title={notificationsTexts.none}>
              {notificationsTexts.noneText}
            </Empty>
          ) : (
            <>
              <ul className="notifications-list">
                {records.map((notification) => (
                  <Item key={notification.id} of={notification} />
                ))}
              </ul>
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={go} />
            </>
          )
        }
      </Answer>
    </Page>
  )
}
