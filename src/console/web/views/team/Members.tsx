/** Lists the tenant's members, each with its actions. */
import { useQueryClient } from "@tanstack/react-query"
import { MoreHorizontal } from "lucide-react"
import { useState } from "react"
import { useMe, useMembership, useMemberships } from "../../app/Asking.ts"
import { switchTo } from "../../app/Switching.ts"
import { Badge } from "../../parts/Badge.tsx"
import type { Tone } from "../../parts/Badge.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { Menu } from "../../parts/Menu.tsx"
import type { MenuEntry } from "../../parts/Menu.tsx"
import { Section } from "../../parts/Page.tsx"
import { advice, Answer } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { teamTexts } from "../../texts/team.ts"
import { changeMember, removeMember, useChange, useMembers } from "./asking.ts"
import type { Member, Role } from "./asking.ts"

const tones: Readonly<Record<Member["status"], Tone>> = {
  active: "good",
  invited: "accent",
  suspended: "warn",
  removed: "plain"
}

const nameOf = ({ email, name }: Member): string => name || email

type Removal = "suspend" | "remove" | "leave"

/**
 * Returns the actions that `viewer` may take on a member. Only owners can change or appoint owners. Members can neither leave nor be removed from
 * their home tenant.
 */
const allowedActions = (member: Member, viewer: Role, isMe: boolean) => ({
  roles: (["owner", "admin", "member"] as const).filter(
    (role) =>
      role !== member.role &&
      viewer !== "member" &&
      (viewer === "owner" || (role !== "owner" && member.role !== "owner"))
  ),
  steers: viewer !== "member" && !isMe && !member.is_home && (viewer === "owner" || member.role !== "owner"),
  leaves: isMe && !member.is_home
})

interface ActionsProps {
  readonly of: Member
  readonly isMe: boolean
  readonly viewer: Role
  readonly onGrave: (what: Removal) => void
}

const Actions = ({ isMe, of: member, onGrave, viewer }: ActionsProps) => {
  const change = useChange(changeMember, () => toast(teamTexts.changed(nameOf(member))))
  const { leaves, roles, steers } = allowedActions(member, viewer, isMe)
  const { account_id } = member
  const run = (body: { readonly role?: Role; readonly status?: "active" }): void =>
    change.mutate({ account_id, change: body }, { onError: (error) => toast(advice(error), "bad") })
  const entry = (id: string, text: string, onAction: () => void): MenuEntry => ({ id, name: text, text, onAction })
  const entries = [
    ...roles.map((role) =>
      entry(role, teamTexts.makeRole(texts.tenant.roles[role].toLowerCase()), () => run({ role }))
    ),
    ...(steers && member.status === "active" ? [entry("suspend", teamTexts.suspend, () => onGrave("suspend"))] : []),
    ...(steers && member.status === "suspended"
      ? [entry("active", teamTexts.reactivate, () => run({ status: "active" }))]
      : []),
    ...(steers ? [entry("remove", teamTexts.remove, () => onGrave("remove"))] : []),
    ...(leaves ? [entry("leave", teamTexts.leave, () => onGrave("leave"))] : [])
  ]
  if (entries.length === 0) return null
  return (
    <div className="team-menu">
      <Menu
        label={teamTexts.actionsOf(nameOf(member))}
        trigger={<MoreHorizontal size={16} aria-hidden />}
        end
        sections={[{ entries }]}
      />
    </div>
  )
}

interface RemovalDialogProps {
  readonly what: Removal
  readonly of: Member
  readonly onClose: () => void
}

/** Asks for confirmation before a member loses access. */
const RemovalDialog = ({ of: member, onClose, what }: RemovalDialogProps) => {
  const queries = useQueryClient()
  const membership = useMembership()
  const { data: memberships } = useMemberships()
  const team = membership?.tenant_name ?? ""
  const name = nameOf(member)
  const act = useChange(
    async () => {
      const changed =
        what === "suspend"
          ? await changeMember({ account_id: member.account_id, change: { status: "suspended" } })
          : await removeMember(member.account_id)
      const home = memberships?.find(({ is_home }) => is_home)
      if (what === "leave" && home !== undefined) await switchTo(home.tenant_id, queries)
      return changed
    },
    () => {
      onClose()
      toast(what === "leave" ? teamTexts.left(team) : teamTexts.changed(name))
    }
  )
  const words = {
    suspend: [teamTexts.suspendTitle(name), teamTexts.suspendText, teamTexts.suspend],
    remove: [teamTexts.removeTitle(name), teamTexts.removeText, teamTexts.remove],
    leave: [teamTexts.leaveTitle(team), teamTexts.leaveText, teamTexts.leave]
  } as const
  const [title, text, action] = words[what]
  return (
    <Confirm
      title={title}
      action={action}
      isOpen
      isPending={act.isPending}
      error={act.error}
      onClose={onClose}
      onConfirm={() => act.mutate(undefined)}
    >
      {text}
    </Confirm>
  )
}

const columnsOf = (
  me: string | undefined,
  viewer: Role,
  onGrave: (what: Removal, member: Member) => void
): ReadonlyArray<Column<Member>> => [
  {
    id: "member",
    title: teamTexts.member,
    card: "title",
    cell: (member) => (
      <span className="team-name">
        {nameOf(member)}
        {member.account_id === me ? <Badge tone="accent">{teamTexts.you}</Badge> : null}
        {member.name === "" ? null : <span className="quiet small">{member.email}</span>}
      </span>
    )
  },
  {
    id: "role",
    title: teamTexts.role,
    card: "plain",
    cell: ({ role }) => <span data-tip={teamTexts.roleHelp[role]}>{texts.tenant.roles[role]}</span>
  },
  {
    id: "status",
    title: teamTexts.status,
    card: "plain",
    cell: ({ status }) =>
      status === "active" ? (
        <span className="quiet table-usual">{teamTexts.statuses[status]}</span>
      ) : (
        <Badge tone={tones[status]}>{teamTexts.statuses[status]}</Badge>
      )
  },
  { id: "since", title: teamTexts.since, needs: "medium", cell: ({ created_at }) => <When at={created_at} /> },
  {
    id: "actions",
    title: teamTexts.actions,
    isActions: true,
    align: "end",
    cell: (member) => (
      <Actions of={member} isMe={member.account_id === me} viewer={viewer} onGrave={(what) => onGrave(what, member)} />
    )
  }
]

export const Members = () => {
  const members = useMembers()
  const { data: me } = useMe()
  const membership = useMembership()
  const [grave, setGrave] = useState<readonly [Removal, Member]>()
  return (
    <Section title={teamTexts.members} {...(membership?.role === "member" && { lead: teamTexts.notManager })}>
      <Answer of={members} lines={4}>
        {(all) => (
          <Table
            caption={teamTexts.members}
            columns={columnsOf(me?.account.id, membership?.role ?? "member", (what, member) =>
              setGrave([what, member])
            )}
            rows={all.filter(({ status }) => status !== "removed")}
            rowKey={({ account_id }) => account_id}
          />
        )}
      </Answer>
      {grave === undefined ? null : <RemovalDialog what={grave[0]} of={grave[1]} onClose={() => setGrave(undefined)} />}
    </Section>
  )
}
