# SPDX-License-Identifier: GPL-2.0-or-later
# What `braid bench` measures Perl by: as workload.py.
use strict;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);
$| = 1;

sub callee { }

sub calls {
    my ($n) = @_;
    for (my $i = 0; $i < $n; $i++) { callee() }
    return $n;
}

my @NAMES = qw(alpha beta gamma delta epsilon zeta eta theta);
my $ENTRIES = 60;

sub entry {
    my ($i) = @_;
    return { id => $i, name => $NAMES[$i % 8] . ($i * 7919 % 1000), size => $i * 104729 % 1009,
             tags => [$NAMES[$i % 3], $NAMES[$i % 5], $NAMES[$i % 7]] };
}

sub size_of { return $_[0]{size} }

sub as_text {
    my ($one) = @_;
    my %seen = map { $_ => 1 } @{$one->{tags}};
    return sprintf '{"id": %d, "name": "%s", "size": %d, "tags": "%s"}', $one->{id}, $one->{name},
        $one->{size}, join ', ', sort keys %seen;
}

sub parsed {
    my ($text) = @_;
    my %result;
    $text =~ s/^\{|\}$//g;
    for my $part (split /, "/, $text) {
        my ($key, $value) = split /: /, $part, 2;
        s/"//g for $key, $value;
        $result{$key} = $value =~ /^\d+$/ ? $value + 0 : $value;
    }
    return \%result;
}

sub unit {
    my @found;
    for my $i (0 .. $ENTRIES - 1) { push @found, entry($i) }
    my %sizes;
    $sizes{$_->{id}} = size_of($_) for @found;
    @found = sort { $sizes{$a->{id}} <=> $sizes{$b->{id}} } @found;
    my @lines;
    for my $one (@found) { push @lines, as_text($one) }
    my $text = join "\n", @lines;
    my $total = 0;
    for my $line (split /\n/, $text) { $total += parsed($line)->{size} }
    my %words;
    (my $plain = $text) =~ tr/":/  /;
    $words{$_}++ for split ' ', $plain;
    return $total + (sort { $words{$a} <=> $words{$b} } keys %words);
}

sub work {
    my ($n) = @_;
    for (my $i = 0; $i < $n; $i++) { unit() }
    return $n * (4 * $ENTRIES + 1);
}

sub deep {
    my ($n) = @_;
    deep($n - 1) if $n > 1;
    print "0 0\n";
    while (1) { }
}

printf "READY %vd\n", $^V;
while (my $line = <STDIN>) {
    my ($name, $n) = split ' ', $line;
    deep($n) if $name eq 'deep';
    my $start = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
    my $calls = $name eq 'calls' ? calls($n) : work($n);
    printf "%d %d\n", (clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $start) * 1e9, $calls;
}
