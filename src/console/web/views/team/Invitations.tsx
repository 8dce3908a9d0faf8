/** Lists the tenant's invitations, with the form that sends one. */
import { UserPlus } from "lucide-react"
import { useState } from "react"
import { useMembership } from "../../app/Asking.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Button } from "../../parts/Button.tsx"
import { Confirm } from "../../parts/Dialog.tsx"
import { FormDialog } from "../../parts/FormDialog.tsx"
import { SelectField, TextField } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer } from "../../parts/States.tsx"
import { Table } from "../../parts/Table.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { When } from "../../parts/When.tsx"
import { texts } from "../../texts.ts"
import { teamTexts } from "../../texts/team.ts"
import { invite, takeBack, useChange, useInvites, useManages } from "./asking.ts"
import type { Invite, Role } from "./asking.ts"

const InviteDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const [email, setEmail] = useState("")
  const [role, setRole] = useState<Role>("member")
  const membership = useMembership()
  const roles = (["member", "admin", "owner"] as const).filter((one) => one !== "owner" || membership?.role === "owner")
  const send = useChange(invite, (made) => {
    toast(teamTexts.invited(made.email))
    onClose()
  })
  return (
    <FormDialog
      title={teamTexts.inviteTitle}
      action={teamTexts.inviteSend}
      error={send.error}
      isPending={send.isPending}
      onSubmit={() => send.mutate({ email: email.trim(), role })}
      onClose={onClose}
    >
      <TextField
        name="email"
        type="email"
        label={teamTexts.inviteEmail}
        value={email}
        onChange={setEmail}
        isRequired
        autoFocus
      />
      <SelectField
        name="role"
        label={teamTexts.role}
        help={teamTexts.roleHelp[role]}
        value={role}
        onChange={(chosen) => setRole(chosen as Role)}
        options={roles.map((one) => [one, texts.tenant.roles[one]] as const)}
      />
      <p className="quiet">{teamTexts.inviteText}</p>
    </FormDialog>
  )
}

const columnsOf = (onTakeBack: (invite: Invite) => void): ReadonlyArray<Column<Invite>> => [
  { id: "email", title: teamTexts.inviteEmail, card: "title", cell: ({ email }) => email },
  { id: "role", title: teamTexts.role, card: "plain", cell: ({ role }) => texts.tenant.roles[role] },
  {
    id: "status",
    title: teamTexts.status,
    card: "plain",
    cell: ({ status }) => (
      <Badge tone={status === "pending" ? "warn" : status === "accepted" ? "good" : "plain"}>
        {teamTexts.inviteStates[status]}
      </Badge>
    )
  },
  { id: "until", title: teamTexts.until, cell: ({ expires_at }) => <When at={expires_at} as="day" /> },
  {
    id: "actions",
    title: teamTexts.actions,
    isActions: true,
    align: "end",
    cell: (one) =>
      one.status === "pending" ? <Button onPress={() => onTakeBack(one)}>{teamTexts.takeBack}</Button> : null
  }
]

export const Invitations = () => {
  const manages = useManages()
  const invites = useInvites(manages)
  const [isInviting, setInviting] = useState(false)
  const [target, setTarget] = useState<Invite>()
  const take = useChange(takeBack, () => {
    toast(teamTexts.takenBack)
    setTarget(undefined)
  })
  if (!manages) return null
  return (
    <Section
      title={teamTexts.invitations}
      actions={
        <Button icon={UserPlus} onPress={() => setInviting(true)}>
          {teamTexts.invite}
        </Button>
      }
    >
      <Answer of={invites} lines={2}>
        {(all) =>
          all.some(({ status }) => status === "pending" || status === "expired") ? (
            <Table
              caption={teamTexts.invitations}
              columns={columnsOf(setTarget)}
              rows={all.filter(({ status }) => status === "pending" || status === "expired")}
              rowKey={({ id }) => id}
            />
          ) : (
            <p className="quiet">{teamTexts.noInvites}</p>
          )
        }
      </Answer>
      {isInviting ? <InviteDialog onClose={() => setInviting(false)} /> : null}
      {target === undefined ? null : (
        <Confirm
          title={teamTexts.takeBackTitle(target.email)}
          action={teamTexts.takeBack}
          isOpen
          isPending={take.isPending}
          error={take.error}
          onClose={() => setTarget(undefined)}
          onConfirm={() => take.mutate(target.id)}
        >
          {teamTexts.takeBackText}
        </Confirm>
      )}
    </Section>
  )
}
